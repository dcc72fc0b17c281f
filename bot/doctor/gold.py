"""Cases whose right replies are known, a file for each stage; `bot.doctor.gold_cases` reads them."""
