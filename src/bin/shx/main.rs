//! `shx`: runs one shell command the way the library does, for people and for scripts.

mod args;
mod doctor;
mod feed;
mod json;
mod print;
mod progress;
mod relay;
mod request;
mod run;
mod signals;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(options) => run::run(options),
        Command::Doctor(options) => doctor::doctor(&options),
    }
}
