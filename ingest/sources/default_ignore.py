"""Patterns of files that are not documents, by kind."""

from collections.abc import Mapping
from types import MappingProxyType

IGNORED_KINDS: Mapping[str, str] = MappingProxyType({
    "lock files and lists of packages": (
        "*.lock *.lockb *-lock.json *-lock.yaml *-lock.yml *.lock.json npm-shrinkwrap.json go.sum go.mod go.work "
        "package.json bower.json composer.json Gemfile *.gemspec Pipfile Cargo.toml pyproject.toml setup.cfg "
        "requirements.txt requirements-dev*.txt requirements-test*.txt requirements/*.txt constraints.txt "
        "environment.yml environment.yaml pom.xml packages.config"
    ),
    "configuration": (
        "_config*.yml _config*.yaml _config*.toml mkdocs.yml mkdocs.yaml antora.yml book.toml hugo.toml hugo.yaml "
        "config.toml netlify.toml netlify.yml vercel.json firebase.json now.json wrangler.toml tsconfig*.json "
        "jsconfig*.json *.config.json *.config.toml *.config.yml *.config.yaml *.conf *.cfg *.ini *.env "
        "*.properties renovate.json lerna.json nx.json turbo.json babel.json cspell*.json cspell*.yaml "
        "markdownlint*.json docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml cloudbuild*.yaml "
        "azure-pipelines*.yml appveyor.yml codecov.yml action.yml action.yaml skaffold.yaml Chart.yaml "
        "sidebars.json sidebars.yml sidebars.yaml navigation.yml navigation.yaml navigation.json nav.yml nav.yaml "
        "menu.yml menus.yml _category_.json _category_.yml _meta.json meta.json manifest.json *.webmanifest "
        "browserconfig.xml crossdomain.xml Makefile Dockerfile *.dockerfile Vagrantfile Rakefile Procfile "
        "Jenkinsfile Brewfile CODEOWNERS CNAME MANIFEST.in _redirects _headers robots.txt humans.txt ads.txt "
        "security.txt app.json manifest.yml manifest.yaml *.tf *.tfvars *.hcl"
    ),
    "styles, scripts and programs": (
        "*.css *.scss *.sass *.less *.styl *.js *.mjs *.cjs *.jsx *.ts *.tsx *.vue *.svelte *.astro *.map *.wasm "
        "*.py *.rb *.php *.pl *.go *.rs *.java *.kt *.scala *.swift *.c *.h *.cc *.cpp *.hpp *.cs *.lua *.r *.sh "
        "*.bash *.zsh *.fish *.ps1 *.bat *.cmd *.sql *.erb *.haml *.slim *.liquid *.njk *.j2 *.jinja *.jinja2 *.hbs "
        "*.mustache *.ejs *.pug *.tmpl *.tpl *.gradle *.cmake *.proto *.graphql *.patch *.diff "
        "**/_includes/**/*.html **/_layouts/**/*.html _sass _plugins layouts/**/*.html themes/**/*.html "
        "archetypes/default.md"
    ),
    "fonts and pictures of a site": "*.woff *.woff2 *.ttf *.otf *.eot *.ico *.cur *.svg *.icns favicon*.png",
    "builds and generated data": (
        "_site _book _build .next dist site-packages **/target/classes **/lcov-report htmlcov *.min.html *.min.json "
        "*.snap *.tfstate *.tfstate.backup *.log *.tmp *.bak *.orig *.swp *.sqlite *.sqlite3 *.db *.schema.json "
        "sitemap*.xml feed.xml atom.xml rss.xml search.json searchindex.json search-index.json search_index.json "
        "_data 404.html 404.md admin/config.yml federalist.json *.11tydata.json lunr*.json objects.inv *.po *.pot "
        "*.mo *.xlf *.xliff *.har *.lcov *.pb *.parquet *.geojson *.topojson _freeze"
    ),
    "packages of others": (
        "node_modules bower_components __pycache__ venv virtualenv jspm_packages **/vendor/bundle **/vendor/cache "
        "**/vendor/github.com **/vendor/golang.org **/vendor/gopkg.in **/vendor/k8s.io **/vendor/composer"
    ),
    "left behind by programs": "Thumbs.db desktop.ini",
})  # fmt: skip
"""Patterns by kind of file, in the syntax of `exclude`. Names that a handbook's folder may have are not in it:
`coverage`, `vendor`, `pods`, `build`."""

DEFAULT_IGNORE = tuple(pattern for patterns in IGNORED_KINDS.values() for pattern in patterns.split())
IGNORED_KIND_OF: Mapping[str, str] = MappingProxyType(
    {pattern: kind for kind, patterns in IGNORED_KINDS.items() for pattern in patterns.split()}
)
IGNORED_BY_SETTING = "ignore names it"
"""The kind of a file that a pattern in the settings ignores."""
