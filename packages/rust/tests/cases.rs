//! Runs the case files that all hosts share, in the folder that CASES names.

use serde_json::Value;
use sluice_core::*;
use std::io::{Read, Write};

/// Runs the cases of a folder, and prints how many there were.
fn run(name: &str, check: impl Fn(&Value)) {
    let Ok(folder) = std::env::var("CASES") else {
        return;
    };
    let mut count = 0;
    for file in std::fs::read_dir(format!("{folder}/{name}")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = file.as_array().or(file["cases"].as_array()).unwrap();
        cases.iter().for_each(&check);
        count += cases.len();
    }
    println!("cases: {count}");
}

/// `text`, `hex` (bytes that are not UTF-8) or `units` of UTF-16, `repeat` times.
fn bytes_of(case: &Value, text: &str, hex: &str) -> Vec<u8> {
    let once = if let Some(hex) = case[hex].as_str() {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    } else if let Some(units) = case["units"].as_array().filter(|_| text == "text") {
        let units: Vec<u16> = units
            .iter()
            .map(|unit| unit.as_u64().unwrap() as u16)
            .collect();
        String::from_utf16_lossy(&units).into_bytes()
    } else {
        case[text].as_str().unwrap().as_bytes().to_vec()
    };
    once.repeat(case["repeat"].as_u64().unwrap_or(1) as usize)
}

fn text<'a>(value: &'a Value, otherwise: &'a str) -> &'a str {
    value.as_str().unwrap_or(otherwise)
}

fn number(value: &Value) -> i32 {
    value.as_i64().unwrap_or(0) as i32
}

#[test]
fn patterns() {
    run("regex/cases", |case| {
        let source = text(&case["pattern"], "");
        let pattern = Pattern::new(source);
        if let Some(wanted) = case["code"].as_str() {
            let error = pattern.err().expect("the pattern is refused");
            assert!(
                error.to_string().ends_with(text(&case["message"], "?")),
                "{error}"
            );
            let Error::Pattern { offset, code, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(
                (code, offset as i32),
                (wanted, number(&case["offset"])),
                "{source}"
            );
            return;
        }
        let (pattern, text) = (pattern.unwrap(), bytes_of(case, "text", "hex"));
        let spans = pattern.find_all(&text).unwrap();
        let pairs: Vec<_> = spans.iter().map(|span| [span.start, span.end]).collect();
        assert_eq!(serde_json::json!(pairs), case["spans"], "{source}");
        assert_eq!(
            pattern.is_match(&text).unwrap(),
            !spans.is_empty(),
            "{source}"
        );
        if let Some(full) = case["full"].as_bool() {
            assert_eq!(pattern.is_full_match(&text).unwrap(), full, "{source}");
        }
    });
}

fn builtin(code: &str) -> Builtin {
    match code {
        "DETECT_SSN" => Builtin::Ssn,
        "DETECT_CARD" => Builtin::CreditCard,
        "DETECT_PHONE" => Builtin::PhoneNumber,
        "DETECT_EMAIL" => Builtin::Email,
        "DETECT_SIN" => Builtin::CanadaSin,
        "DETECT_IBAN" => Builtin::Iban,
        "DETECT_IP" => Builtin::IpAddress,
        "DETECT_VAT" => Builtin::VatNumber,
        "DETECT_TAX_ID" => Builtin::DeTaxId,
        "DETECT_NIR" => Builtin::FrNir,
        "DETECT_NIF" => Builtin::EsNif,
        "DETECT_FISCAL_CODE" => Builtin::ItFiscalCode,
        "DETECT_BSN" => Builtin::NlBsn,
        "DETECT_PESEL" => Builtin::PlPesel,
        "DETECT_PERSONNUMMER" => Builtin::SePersonnummer,
        "DETECT_NINO" => Builtin::UkNino,
        "DETECT_NHS" => Builtin::UkNhs,
        "DETECT_AADHAAR" => Builtin::InAadhaar,
        "DETECT_CPF" => Builtin::BrCpf,
        "DETECT_CNPJ" => Builtin::BrCnpj,
        "DETECT_SECRET" => Builtin::Secret,
        _ => panic!("{code}"),
    }
}

fn rules_of(case: &Value) -> Vec<Rule> {
    let all = [
        "DETECT_SSN",
        "DETECT_CARD",
        "DETECT_PHONE",
        "DETECT_EMAIL",
        "DETECT_SIN",
    ];
    let Some(rules) = case["rules"].as_array() else {
        return all.map(|code| builtin(code).into()).into();
    };
    let rule = |rule: &Value| {
        let replacement = text(&rule["replacement"], "");
        if let Some(words) = rule["words"].as_array() {
            return Rule::words(words.iter().map(|word| text(word, "")), replacement);
        }
        match rule["pattern"].as_str() {
            Some(pattern) => Rule::new(pattern, replacement),
            None => Rule::from(builtin(text(&rule["builtin"], ""))).with(replacement),
        }
    };
    rules.iter().map(rule).collect()
}

#[test]
fn masks_cut_anywhere() {
    run("regex/masks", |case| {
        let mask = Mask::new(rules_of(case)).unwrap();
        let text = bytes_of(case, "text", "hex");
        let wanted = bytes_of(case, "masked", "maskedHex");
        assert_eq!(mask.mask_bytes(&text).unwrap(), wanted, "{case}");
        for size in (1..=text.len()).step_by((text.len() / 100).max(1)) {
            let mut writer = MaskWriter::new(Vec::new(), &mask).unwrap();
            text.chunks(size)
                .for_each(|piece| writer.write_all(piece).unwrap());
            assert_eq!(
                writer.finish().unwrap(),
                wanted,
                "{case} in pieces of {size}"
            );
        }
        let mut read = Vec::new();
        let mut reader = MaskReader::new(&text[..], &mask).unwrap();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, wanted, "{case}");
        if let Some(hold) = case["hold"].as_i64() {
            assert_eq!(
                mask.hold_bytes().unwrap(),
                usize::try_from(hold).ok(),
                "{case}"
            );
        }
    });
}

fn fields(list: &Value) -> Vec<Field> {
    let field = |each: &Value| Field {
        name: text(&each["name"], "").into(),
        value: text(&each["value"], "").into(),
        is_pattern: each["type"] == "regex",
    };
    list.as_array()
        .map_or(Vec::new(), |list| list.iter().map(field).collect())
}

fn route_of(route: &Value) -> Route {
    Route {
        id: number(&route["id"]),
        path: text(&route["path"]["value"], "/").into(),
        path_type: match route["path"]["type"].as_str() {
            Some("exact") => PathType::Exact,
            Some("regex") => PathType::Regex,
            _ => PathType::Prefix,
        },
        hostname: text(&route["hostname"], "").into(),
        method: text(&route["method"], "").into(),
        headers: fields(&route["headers"]),
        query: fields(&route["query"]),
        created: route["createdAt"].as_f64().unwrap_or(0.0),
        name: text(&route["name"], &format!("n/{}", route["id"])).into(),
        rule_index: number(&route["ruleIndex"]),
        match_index: number(&route["matchIndex"]),
        scope: number(&route["scope"]),
    }
}

/// Texts of requests are Latin-1: a character is a byte.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| character as u8).collect()
}

#[test]
fn routes() {
    run("routes", |case| {
        let any = serde_json::json!([["", 0]]);
        let listeners = case["listeners"].as_array().or(any.as_array()).unwrap();
        let listeners = listeners.iter().map(|each| Listener {
            hostname: text(&each[0], "").into(),
            scope: number(&each[1]),
        });
        let routes = case["routes"].as_array().unwrap();
        let routes = routes.iter().map(route_of).collect();
        let router = Router::with_listeners(routes, listeners.collect()).unwrap();
        for request in case["requests"].as_array().unwrap() {
            let query = request["query"].as_str().map(|query| format!("?{query}"));
            let target = format!(
                "{}{}",
                text(&request["path"], "/"),
                query.unwrap_or_default()
            );
            let made = Request::new(latin1(text(&request["method"], "GET")), latin1(&target))
                .host(latin1(text(&request["authority"], "a")));
            let headers = request["headers"].as_array().into_iter().flatten();
            let made = headers.fold(made, |made, header| {
                made.header(latin1(text(&header[0], "")), latin1(text(&header[1], "")))
            });
            let wanted = request["expect"].as_i64().map(|id| id as i32);
            assert_eq!(
                router.find(&made).unwrap(),
                wanted,
                "{request} of {}",
                case["title"]
            );
        }
    });
}

#[test]
fn tokens() {
    let (o200k, cl100k) = (TokenCounter::new("gpt-4o"), TokenCounter::new("gpt-4"));
    run("tokens/cases", |case| {
        let counter = if case["encoding"] == "o200k_base" {
            &o200k
        } else {
            &cl100k
        };
        let text = bytes_of(case, "text", "hex");
        assert_eq!(
            counter.count(&text).unwrap() as i32,
            number(&case["count"]),
            "{case}"
        );
        let ids = case["ids"].as_array().map_or(&[][..], Vec::as_slice);
        let found = counter.encode(&text, ids.len()).unwrap();
        assert_eq!(serde_json::json!(found), serde_json::json!(ids), "{case}");
    });
}

/// Compares the tokens of a text with those that the gateway counts for each model, which MODELS has.
#[test]
fn models() {
    let Ok(models) = std::env::var("MODELS") else {
        return;
    };
    let models: Value = serde_json::from_str(&models).unwrap();
    // 30 tokens in one vocabulary, and another number in the other.
    let sample = "日本語のテキスト、Ünïcödé, and 12345 numbers 😀".repeat(10);
    let count = |model: &str| TokenCounter::new(model).count(&sample).unwrap() as f64;
    let (o200k, cl100k) = (count("gpt-4o"), count("gpt-4"));
    assert_ne!(o200k, cl100k);
    for (model, encoding) in models.as_object().unwrap() {
        let tokens = if encoding["encoding"] == "o200k_base" {
            o200k
        } else {
            cl100k
        };
        let wanted = (tokens * encoding["factor"].as_f64().unwrap()).ceil();
        assert_eq!(count(model), wanted, "{model}");
    }
}

fn guards_of(case: &Value) -> Guards {
    let guard = |guard: &Value| match guard["rejects"].as_bool() {
        Some(true) => Guard::rejecting(rules_of(guard)),
        _ => Guard::masking(rules_of(guard)),
    };
    Guards::new(case["guards"].as_array().unwrap().iter().map(guard)).unwrap()
}

#[test]
fn texts() {
    run("texts/cases", |case| {
        let guards = guards_of(case);
        let format = match text(&case["format"], "") {
            "Completions" => Format::Completions,
            "Messages" => Format::Messages,
            "Responses" => Format::Responses,
            _ => Format::Embeddings,
        };
        let kind = match text(&case["message"], "") {
            "request" => Kind::Request,
            "answer" => Kind::Answer,
            _ => Kind::Stream,
        };
        let message = text(&case["input"], "").as_bytes();
        let wanted = match (case["code"].as_str(), case["rejectedBy"].as_u64()) {
            (Some(code), _) => Err(code.to_owned()),
            (None, Some(guard)) => Err(guard.to_string()),
            (None, None) => Ok(text(&case["output"], "").to_owned()),
        };
        for cut in (0..=message.len()).step_by((message.len() / 20).max(1)) {
            let mut rewriter = guards.rewriter(format, kind).unwrap();
            let masked = rewriter.push(&message[..cut]).and_then(|mut masked| {
                masked.extend(rewriter.end(&message[cut..])?);
                Ok(String::from_utf8(masked).unwrap())
            });
            let found = masked.map_err(|error| match error {
                Error::Unreadable { code, .. } => code.to_owned(),
                Error::Rejected { guard, .. } => guard.to_string(),
                other => panic!("{other}"),
            });
            assert_eq!(found, wanted, "{} cut at {cut}", case["title"]);
        }
    });
}
