// Builtins that are patterns: texts with a fixed form, such as the keys of an issuer. All have a bound of undecided
// bytes (hold.ts): no unbounded repetition is followed by more. check.ts verifies what a pattern cannot express. The first bytes of a
// pattern are also in builtin-filter.ts.
import { blockAlloc, blockFree } from '../arena'
import { DETECT_API_KEY, DETECT_IBAN, DETECT_IP, DETECT_PRIVATE_KEY, ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import { regexCompile, regexOf } from './index'
import { useBuiltinFilter } from './prefilter'
import { R_FILTER, R_HAS_FILTER } from './run'

const PATTERN_BYTES: usize = 4096
let pattern: usize = 0
let length: i32 = 0

/** Appends ASCII text to the pattern. */
function add(text: string): void {
  for (let i = 0; i < text.length; i++) store<u8>(pattern + <usize>(length + i), <u8>text.charCodeAt(i))
  length += text.length
}

/** Country, two check digits, and the account number: without separators or in groups of four. */
function addIban(): void {
  add('\\b[A-Za-z]{2}[0-9]{2}(?:[A-Za-z0-9]{11,30}|(?:[ -][A-Za-z0-9]{4}){2,7}(?:[ -][A-Za-z0-9]{1,3})?)')
}

/** Four or five numbers with dots; groups of hexadecimal digits with colons. */
function addIp(): void {
  add('\\b[0-9]{1,3}(?:\\.[0-9]{1,3}){3,4}')
  add('|\\b[0-9A-Fa-f]{1,4}(?:(?::{1,2}[0-9A-Fa-f]{1,4}){1,8}(?:::)?(?:\\.[0-9]{1,3}){0,4}|::)')
  add('|::[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,7}(?:\\.[0-9]{1,3}){0,4}')
}

/** PEM, with its headers; the body ends at the next two dashes. A body without an end is masked too. */
function addPrivateKey(): void {
  add('-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\s|\\\\[nr]){0,8}')
  add('(?:[A-Z][A-Za-z-]{2,15}: ?[^\\r\\n\\\\]{0,80}(?:\\s|\\\\[nr]){1,8}){0,3}[A-Za-z0-9+/=]{16}(?:[^-]|-[^-])*')
  add('(?:-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?')
  add('|\\bAGE-SECRET-KEY-1[A-Z0-9]{58}')
}

/** The prefix of each issuer, and the least number of characters after it. Longer keys match whole. */
function addApiKey(): void {
  add('\\b(?:sk-ant-[\\w-]{24,}') // Anthropic
  add('|sk-(?:proj|svcacct|admin|None|or-v1|lf)-[\\w-]{24,}|sk-[A-Za-z0-9]{24,}') // OpenAI, OpenRouter, Langfuse, DeepSeek
  add('|(?:AKIA|ASIA)[A-Z2-7]{16}\\b') // AWS
  add('|gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}') // GitHub
  add('|gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-[\\w-]{20,}') // GitLab
  add('|xox[abceoprs]-[A-Za-z0-9-]{16,}|xapp-[0-9]-[A-Za-z0-9-]{20,}|hooks\\.slack\\.com/services/[A-Za-z0-9/]{20,}') // Slack
  add('|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}') // Stripe
  add('|AIza[\\w-]{35,}|GOCSPX-[\\w-]{28,}|ya29\\.[\\w-]{30,}') // Google
  add('|npm_[A-Za-z0-9]{36,}|pypi-[\\w-]{50,}|rubygems_[0-9a-f]{48,}') // npm, PyPI, RubyGems
  add('|hf_[A-Za-z0-9]{34,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}') // Hugging Face, Groq, xAI, Perplexity
  add('|r8_[A-Za-z0-9]{37,}|nvapi-[\\w-]{40,}|dapi[0-9a-f]{32,}') // Replicate, NVIDIA, Databricks
  add('|SG\\.[\\w-]{22}\\.[\\w-]{43,}|key-[0-9a-f]{32,}') // SendGrid, Mailgun
  add('|do[oprt]_v1_[0-9a-f]{64,}|shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}|sq0(?:atp|csp)-[\\w-]{22,}') // DigitalOcean, Shopify, Square
  add('|hv[brs]\\.[\\w-]{24,}|dp\\.(?:ct|pt|sa|st)\\.[A-Za-z0-9]{40,}|dckr_(?:oat|pat)_[\\w-]{27,}') // Vault, Doppler, Docker
  add('|glsa_[A-Za-z0-9]{32}_[0-9a-f]{8,}|glc_[A-Za-z0-9+/=]{32,}|sntry[su]_[\\w=+/-]{40,}|NRAK-[A-Z0-9]{27,}') // Grafana, Sentry, New Relic
  add('|lin_api_[A-Za-z0-9]{40,}|ntn_[A-Za-z0-9]{40,}|figd_[\\w-]{40,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34,}') // Linear, Notion, Figma, Postman
  add('|pscale_(?:oauth|pw|tkn)_[\\w.=-]{32,}|sbp_[0-9a-f]{40,}|ATATT3[\\w=-]{100,}') // PlanetScale, Supabase, Atlassian
  add('|tskey-[a-z]{2,12}-[A-Za-z0-9-]{20,}') // Tailscale
  // JSON web tokens: the Base64 of {" and alg, typ, kid, cty, enc, x5t, jku, jwk or zip, then ":".
  add('|eyJ(?:hbGc|0eXA|raWQ|jdHk|lbmM|4NXQ|qa3U|qd2s|6aXA)iO[\\w-]{8,}(?:\\.[\\w-]+)*)')
}

/** Compiles the pattern of a builtin. Returns a handle, or a code. */
export function compileBuiltin(detect: i32): i32 {
  pattern = blockAlloc(PATTERN_BYTES)
  if (pattern == 0) return ERROR_MEMORY
  length = 0
  if (detect == DETECT_IBAN) addIban()
  else if (detect == DETECT_IP) addIp()
  else if (detect == DETECT_API_KEY) addApiKey()
  else if (detect == DETECT_PRIVATE_KEY) addPrivateKey()
  const handle = length == 0 ? ERROR_ARGUMENT : regexCompile(pattern, length, 0)
  blockFree(pattern)
  if (handle < 0) return handle
  const regex = regexOf(handle)
  useBuiltinFilter(regex + R_FILTER, detect)
  store<u32>(regex, 1, R_HAS_FILTER)
  return handle
}
