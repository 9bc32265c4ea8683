use crate::abi;
use crate::error::Result;
use crate::instance::Core;
use crate::pattern::compile_pattern;
use crate::pool::{Object, Session, CORE};
use std::sync::Arc;
use wasmtime::Val;

/// How much of a text is copied into an instance at a time.
pub(crate) const PIECE: usize = 64 * 1024;

/// Detectors of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    Email,
    CreditCard,
    PhoneNumber,
    Ssn,
    CanadaSin,
    Iban,
    IpAddress,
    ApiKey,
    PrivateKey,
    VatNumber,
    DeTaxId,
    FrNir,
    EsNif,
    ItFiscalCode,
    NlBsn,
    PlPesel,
    SePersonnummer,
    UkNino,
    UkNhs,
    InAadhaar,
    BrCpf,
    BrCnpj,
    /// Random tokens, and shorter ones after a word such as `key` or `password`
    Secret,
}

impl Builtin {
    /// The code of the detector, and the replacement that the gateway uses.
    fn detector(self) -> (i32, &'static str) {
        match self {
            Builtin::Email => (abi::DETECT_EMAIL, "<EMAIL_ADDRESS>"),
            Builtin::CreditCard => (abi::DETECT_CARD, "<CREDIT_CARD>"),
            Builtin::PhoneNumber => (abi::DETECT_PHONE, "<PHONE_NUMBER>"),
            Builtin::Ssn => (abi::DETECT_SSN, "<SSN>"),
            Builtin::CanadaSin => (abi::DETECT_SIN, "<CA_SIN>"),
            Builtin::Iban => (abi::DETECT_IBAN, "<IBAN>"),
            Builtin::IpAddress => (abi::DETECT_IP, "<IP_ADDRESS>"),
            Builtin::ApiKey => (abi::DETECT_API_KEY, "<API_KEY>"),
            Builtin::PrivateKey => (abi::DETECT_PRIVATE_KEY, "<PRIVATE_KEY>"),
            Builtin::VatNumber => (abi::DETECT_VAT, "<VAT_NUMBER>"),
            Builtin::DeTaxId => (abi::DETECT_TAX_ID, "<DE_TAX_ID>"),
            Builtin::FrNir => (abi::DETECT_NIR, "<FR_NIR>"),
            Builtin::EsNif => (abi::DETECT_NIF, "<ES_NIF>"),
            Builtin::ItFiscalCode => (abi::DETECT_FISCAL_CODE, "<IT_FISCAL_CODE>"),
            Builtin::NlBsn => (abi::DETECT_BSN, "<NL_BSN>"),
            Builtin::PlPesel => (abi::DETECT_PESEL, "<PL_PESEL>"),
            Builtin::SePersonnummer => (abi::DETECT_PERSONNUMMER, "<SE_PERSONNUMMER>"),
            Builtin::UkNino => (abi::DETECT_NINO, "<UK_NINO>"),
            Builtin::UkNhs => (abi::DETECT_NHS, "<UK_NHS>"),
            Builtin::InAadhaar => (abi::DETECT_AADHAAR, "<IN_AADHAAR>"),
            Builtin::BrCpf => (abi::DETECT_CPF, "<BR_CPF>"),
            Builtin::BrCnpj => (abi::DETECT_CNPJ, "<BR_CNPJ>"),
            Builtin::Secret => (abi::DETECT_SECRET, "<SECRET>"),
        }
    }
}

#[derive(Clone, Debug)]
enum Matcher {
    Builtin(i32),
    Pattern(String),
    /// One word a line
    Words(String),
}

/// Replaces the matches of a pattern, of a builtin or of words with a text.
#[derive(Clone, Debug)]
pub struct Rule {
    matcher: Matcher,
    replacement: String,
}

impl Rule {
    /// Replaces the matches of a pattern in RE2 syntax.
    pub fn new(pattern: impl Into<String>, replacement: impl Into<String>) -> Rule {
        Rule {
            matcher: Matcher::Pattern(pattern.into()),
            replacement: replacement.into(),
        }
    }

    /// Replaces words and names, which match as a whole, in upper or lower case. At most 10,000 words of 256 bytes.
    pub fn words<W: AsRef<str>>(
        words: impl IntoIterator<Item = W>,
        replacement: impl Into<String>,
    ) -> Rule {
        let line = |word: W| word.as_ref().replace('\n', " ");
        let lines: Vec<String> = words.into_iter().map(line).collect();
        Rule {
            matcher: Matcher::Words(lines.join("\n")),
            replacement: replacement.into(),
        }
    }

    /// Replaces with another text.
    pub fn with(self, replacement: impl Into<String>) -> Rule {
        Rule {
            replacement: replacement.into(),
            ..self
        }
    }
}

impl From<Builtin> for Rule {
    fn from(builtin: Builtin) -> Rule {
        let (code, replacement) = builtin.detector();
        Rule {
            matcher: Matcher::Builtin(code),
            replacement: replacement.to_owned(),
        }
    }
}

/// Replaces the matches of a pattern with `<masked>`.
impl From<&str> for Rule {
    fn from(pattern: &str) -> Rule {
        Rule::new(pattern, "<masked>")
    }
}

/// Compiles rules to the handle of a mask set.
pub(crate) fn compile_rules(core: &mut Core, rules: &[Rule]) -> Result<i32> {
    let set = core.checked("creating a mask", "mask_new", &[])?;
    let added = rules.iter().try_for_each(|rule| add_rule(core, set, rule));
    core.or_free(added, "mask_free", set)
}

fn add_rule(core: &mut Core, set: i32, rule: &Rule) -> Result<()> {
    let [text, length] = core.put(rule.replacement.as_bytes())?;
    let (function, what) = match &rule.matcher {
        Matcher::Builtin(code) => ("mask_add_builtin", *code),
        Matcher::Words(lines) => {
            let [words, size] = core.put(lines.as_bytes())?;
            let arguments = [Val::I32(set), words, size, text, length];
            return core
                .checked("adding a list of words", "mask_add_words", &arguments)
                .map(|_| ());
        }
        Matcher::Pattern(pattern) => ("mask_add", compile_pattern(core, pattern, 0)?),
    };
    let arguments = [Val::I32(set), Val::I32(what), text, length];
    let added = core.checked("adding a rule", function, &arguments);
    if let Matcher::Pattern(_) = rule.matcher {
        // The set has its own reference to the pattern.
        core.call("regex_free", &[Val::I32(what)])?;
    }
    added.map(|_| ())
}

/// Rules that are applied together. Of overlapping matches, the replacement of the first is used.
#[derive(Clone)]
pub struct Mask(Arc<Object>);

impl Mask {
    /// Compiles rules.
    pub fn new<R: Into<Rule>>(rules: impl IntoIterator<Item = R>) -> Result<Mask> {
        let rules: Vec<Rule> = rules.into_iter().map(Into::into).collect();
        let build = move |core: &mut Core| compile_rules(core, &rules);
        Ok(Mask(Object::new(&CORE, "mask_free", build)?))
    }

    /// Masks a text. If it fails, the text must not pass.
    pub fn mask(&self, text: &str) -> Result<String> {
        let masked = self.mask_bytes(text.as_bytes())?;
        Ok(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Masks a text in UTF-8. If it fails, the text must not pass.
    pub fn mask_bytes(&self, text: &[u8]) -> Result<Vec<u8>> {
        self.0.run(|core, mask| {
            let stream = core.checked("creating a stream", "stream_new", &[Val::I32(mask)])?;
            let masked = mask_pieces(core, stream, text);
            core.call("stream_free", &[Val::I32(stream)])?;
            masked
        })
    }

    /// How many bytes a [`crate::MaskWriter`] holds back at most; `None` if a match can be of any length.
    pub fn hold_bytes(&self) -> Result<Option<usize>> {
        let hold = self
            .0
            .run(|core, mask| core.call("mask_hold", &[Val::I32(mask)]))?;
        Ok(usize::try_from(hold).ok())
    }

    pub(crate) fn open(&self) -> Result<Session> {
        self.0.pool.open("stream_free", |core| {
            let mask = self.0.handle(core)?;
            core.checked("creating a stream", "stream_new", &[Val::I32(mask)])
        })
    }
}

fn mask_pieces(core: &mut Core, stream: i32, text: &[u8]) -> Result<Vec<u8>> {
    let mut masked = Vec::with_capacity(text.len() + 16);
    for piece in text.chunks(PIECE) {
        push_text(core, stream, piece, false, &mut masked)?;
    }
    push_text(core, stream, &[], true, &mut masked)?;
    Ok(masked)
}

/// Adds a piece to a stream, and what comes out to `masked`.
pub(crate) fn push_text(
    core: &mut Core,
    stream: i32,
    piece: &[u8],
    is_end: bool,
    masked: &mut Vec<u8>,
) -> Result<()> {
    let [text, length] = core.put(piece)?;
    let arguments = [Val::I32(stream), text, length, Val::I32(is_end.into())];
    let size = core.checked("masking", "stream_push", &arguments)?;
    let start = core.call("stream_output", &[Val::I32(stream)])? as u32;
    masked.extend_from_slice(core.read(start, size as usize)?);
    Ok(())
}
