"""Where schemas come from: ids, subjects, versions and the `.proto` text behind them."""
