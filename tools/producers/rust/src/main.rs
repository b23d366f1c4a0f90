//! Signs tokens with Rust's jsonwebtoken: reads the job named by the first argument, prints one JSON line per token.
use jsonwebtoken::{encode, Algorithm, EncodingKey, Header};
use serde::Deserialize;
use serde_json::{json, Value};
use std::str::FromStr;

#[derive(Deserialize)]
struct Key {
    alg: String,
    kid: String,
    pem: String,
}

#[derive(Deserialize)]
struct Job {
    keys: Vec<Key>,
    claims: Vec<Value>,
}

fn sign(key: &Key, claims: &Value) -> Result<String, jsonwebtoken::errors::Error> {
    let mut header = Header::new(Algorithm::from_str(&key.alg)?);
    header.kid = Some(key.kid.clone());
    let pem = key.pem.as_bytes();
    let private = match key.alg.as_bytes() {
        [b'R', ..] | [b'P', ..] => EncodingKey::from_rsa_pem(pem)?,
        [b'E', b'S', ..] => EncodingKey::from_ec_pem(pem)?,
        _ => EncodingKey::from_ed_pem(pem)?,
    };
    encode(&header, claims, &private)
}

fn main() {
    let path = std::env::args().nth(1).expect("the file of the job");
    let job: Job = serde_json::from_str(&std::fs::read_to_string(path).expect("a readable job")).expect("a job");
    for key in &job.keys {
        for claims in &job.claims {
            let mut line = json!({ "library": "jsonwebtoken (Rust)", "alg": key.alg });
            if let Ok(token) = sign(key, claims) {
                line["token"] = Value::String(token);
            }
            println!("{line}");
        }
    }
}
