// The main of a Rust program whose own main, with the tests, stands in candidate.rs. It asks for a nonce only after that one has
// come back, and gives it back: a program that ends itself early leaves it unsaid.
mod candidate;

use std::io::{Read, Write};
use std::os::unix::io::FromRawFd;

fn main() -> std::process::ExitCode {
    let code = std::process::Termination::report(candidate::fixpoint_main());
    let (mut questions, mut answers) = unsafe { (std::fs::File::from_raw_fd(3), std::fs::File::from_raw_fd(4)) };
    let mut frame = [0u8; 51];
    let mut reply = b"\x2e\0\0\0t2:s4:dones32:".to_vec();
    let said = answers.write_all(b"\x0b\0\0\0t1:s5:ended").and_then(|_| questions.read_exact(&mut frame)).and_then(|_| {
        reply.extend_from_slice(&frame[19..]);
        answers.write_all(&reply)
    });
    if said.is_ok() { code } else { std::process::ExitCode::from(99) }
}
