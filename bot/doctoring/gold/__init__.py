"""Cases whose right replies are known, a file for each stage; `bot.doctoring.cases` reads them."""
