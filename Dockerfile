# Two stages: the first installs what the locks name, hash by hash; the second carries the result and no build tools.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
# "ray" makes an image that also runs on the machines of a Ray cluster.
ARG LOCK=run
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /build
# The locks come before the code, so that an edit of the code installs nothing again.
COPY requirements/build.lock requirements/${LOCK}.lock requirements/
RUN python -m venv /opt/footnote \
 && /opt/footnote/bin/pip install --require-hashes --no-deps -r requirements/build.lock \
 && /opt/footnote/bin/pip install --require-hashes --no-deps -r requirements/${LOCK}.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY bot bot
COPY pipeline pipeline
COPY ingest ingest
COPY storage storage
RUN /opt/footnote/bin/pip install --no-deps --no-build-isolation .

FROM python:${PYTHON}-slim
# For corpora that are read from git repositories.
RUN apt-get update && apt-get install --yes --no-install-recommends git openssh-client && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 footnote \
 && useradd --uid 10001 --gid footnote --home-dir /var/lib/footnote --create-home --shell /usr/sbin/nologin footnote \
 && mkdir /etc/footnote \
 && install --directory --owner=footnote --group=footnote --mode=0700 /var/lib/footnote-key
COPY --from=build /opt/footnote /opt/footnote
ENV PATH=/opt/footnote/bin:$PATH \
    FOOTNOTE_HOME=/var/lib/footnote \
    FOOTNOTE_RECORD__KEY_PATH=/var/lib/footnote-key/record.key \
    PYTHONUNBUFFERED=1
# footnote.toml is read from the working directory.
WORKDIR /etc/footnote
USER 10001:10001
VOLUME /var/lib/footnote /var/lib/footnote-key
# Opens the database and reads the manifest: it fails when the home is gone, full of another version, or corrupt.
HEALTHCHECK --interval=60s --timeout=20s --start-period=20s CMD ["footnote", "corpora", "--json"]
ENTRYPOINT ["footnote"]
CMD ["chat"]
