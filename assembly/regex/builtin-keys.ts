// API keys: for each issuer the pattern of its keys, with the pair of bytes that triggers the search for them
// (builtin-triggers.ts). A key has at most seven bytes before the second one of the pair, all of which are word
// characters except for a dot in front of it. Longer keys match whole.
import { add } from './pattern-text'
import { addTrigger, TRIGGER_CAPITAL, TRIGGER_DASH, TRIGGER_INNER, TRIGGER_UNDERSCORE, TRIGGER_MIXED, TRIGGER_RARE } from './builtin-triggers'

/** The groups of the triggers of API keys. */
export const KEY_TRIGGERS: u32 = TRIGGER_CAPITAL | TRIGGER_DASH | TRIGGER_INNER | TRIGGER_UNDERSCORE | TRIGGER_MIXED | TRIGGER_RARE
/** Maximum number of bytes before the second one of the pair. */
export const KEY_REACH: i32 = 8

/** A bit for each pair and the number of bytes before its second one, by a hash that few others share. */
const pairs = memory.data(128)
let isFirst: bool = true

// @ts-ignore: decorator
@inline
function hashOf(first: u32, second: u32, before: u32): u32 {
  return (first * 37 ^ second * 101 ^ before * 229) & 1023
}

/** Returns whether keys have the pair, with `before` bytes before its second one; rarely true for others too. */
export function isKeyPair(first: u32, second: u32, before: u32): bool {
  const hash = hashOf(first, second, before)
  return ((load<u8>(pairs + (hash >> 3)) >> <u8>(hash & 7)) & 1) != 0
}

/** Returns the number of bytes that a pattern of literals and classes matches. */
function widthOf(pattern: string): i32 {
  let width = 0
  for (let i = 0; i < pattern.length; i++, width++) {
    if (pattern.charCodeAt(i) == 91) while (pattern.charCodeAt(i) != 93) i++
  }
  return width
}

function addPairs(before: i32, first: string, second: string): void {
  for (let i = 0; i < first.length; i++) {
    for (let j = 0; j < second.length; j++) {
      const hash = hashOf(first.charCodeAt(i), second.charCodeAt(j), before)
      store<u8>(pairs + (hash >> 3), load<u8>(pairs + (hash >> 3)) | (<u8>1 << <u8>(hash & 7)))
    }
  }
}

/** Adds keys that begin with `before` (literals and classes), one of the bytes `first`, one of `second` (the pair) and `after`. */
function key(group: u32, before: string, first: string, second: string, after: string): void {
  add(isFirst ? '\\b(?:' : '|')
  isFirst = false
  add(before)
  add('[')
  add(first)
  add('][')
  add(second)
  add(']')
  add(after)
  addTrigger(group, first, second)
  addPairs(widthOf(before) + 1, first, second)
}

function addModelKeys(): void {
  key(TRIGGER_DASH, 's', 'k', '-', 'ant-[\\w-]{24,}') // Anthropic
  // OpenAI, OpenRouter, Langfuse, DeepSeek
  key(TRIGGER_DASH, 's', 'k', '-', '(?:proj|svcacct|admin|None|or-v1|lf)-[\\w-]{24,}')
  key(TRIGGER_DASH, 's', 'k', '-', '[A-Za-z0-9]{24,}')
  key(TRIGGER_UNDERSCORE, 'h', 'f', '_', '[A-Za-z0-9]{34,}') // Hugging Face
  key(TRIGGER_UNDERSCORE, 'gs', 'k', '_', '[A-Za-z0-9]{40,}') // Groq
  key(TRIGGER_DASH, 'xa', 'i', '-', '[A-Za-z0-9]{40,}') // xAI
  key(TRIGGER_DASH, 'ppl', 'x', '-', '[A-Za-z0-9]{40,}') // Perplexity
  key(TRIGGER_UNDERSCORE, 'r', '8', '_', '[A-Za-z0-9]{37,}') // Replicate
  key(TRIGGER_DASH, 'nvap', 'i', '-', '[\\w-]{40,}') // NVIDIA
  key(TRIGGER_RARE, 'da', 'p', 'i', '[0-9a-f]{32,}') // Databricks
}

function addCloudKeys(): void {
  key(TRIGGER_CAPITAL, 'A[KS]', 'I', 'A', '[A-Z2-7]{16}\\b') // AWS
  key(TRIGGER_RARE, 'A', 'I', 'z', 'a[\\w-]{35,}') // Google
  key(TRIGGER_CAPITAL, 'GOC', 'S', 'P', 'X-[\\w-]{28,}')
  key(TRIGGER_UNDERSCORE, 'y', 'a', '2', '9\\.[\\w-]{30,}')
  key(TRIGGER_UNDERSCORE, 'do', 'oprt', '_', 'v1_[0-9a-f]{64,}') // DigitalOcean
  key(TRIGGER_MIXED, '', 'h', 'v', '[brs]\\.[\\w-]{24,}') // Vault
  key(TRIGGER_MIXED, '', 'd', 'p', '\\.(?:ct|pt|sa|st)\\.[A-Za-z0-9]{40,}') // Doppler
  key(TRIGGER_UNDERSCORE, 'gls', 'a', '_', '[A-Za-z0-9]{32}_[0-9a-f]{8,}') // Grafana
  key(TRIGGER_UNDERSCORE, 'gl', 'c', '_', '[A-Za-z0-9+/=]{32,}')
  key(TRIGGER_UNDERSCORE, 'sntry', 'su', '_', '[\\w=+/-]{40,}') // Sentry
  key(TRIGGER_DASH, 'NRA', 'K', '-', '[A-Z0-9]{27,}') // New Relic
  key(TRIGGER_UNDERSCORE, 'pscal', 'e', '_', '(?:oauth|pw|tkn)_(?:[\\w=-]|\\.[\\w=-]){32,}') // PlanetScale
  key(TRIGGER_UNDERSCORE, 'sb', 'p', '_', '[0-9a-f]{40,}') // Supabase
  key(TRIGGER_DASH, 'tske', 'y', '-', '[a-z]{2,12}-[A-Za-z0-9-]{20,}') // Tailscale
}

function addCodeKeys(): void {
  key(TRIGGER_UNDERSCORE, 'gh', 'oprsu', '_', '[A-Za-z0-9]{36,}') // GitHub
  key(TRIGGER_UNDERSCORE, 'githu', 'b', '_', 'pat_[A-Za-z0-9_]{40,}')
  key(TRIGGER_MIXED, '', 'g', 'l', '(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-[\\w-]{20,}') // GitLab
  key(TRIGGER_UNDERSCORE, 'np', 'm', '_', '[A-Za-z0-9]{36,}') // npm
  key(TRIGGER_DASH, 'pyp', 'i', '-', '[\\w-]{50,}') // PyPI
  key(TRIGGER_UNDERSCORE, 'rubygem', 's', '_', '[0-9a-f]{48,}') // RubyGems
  key(TRIGGER_UNDERSCORE, 'dck', 'r', '_', '(?:oat|pat)_[\\w-]{27,}') // Docker
  key(TRIGGER_UNDERSCORE, 'sg', 'p', '_', '(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40,}') // Sourcegraph
  key(TRIGGER_DASH, 'PMA', 'K', '-', '[0-9a-f]{24}-[0-9a-f]{34,}') // Postman
  // JSON web tokens: the Base64 of {" and alg, typ, kid, cty, enc, x5t, jku, jwk or zip, then ":".
  key(TRIGGER_RARE, 'e', 'y', 'J', '(?:hbGc|0eXA|raWQ|jdHk|lbmM|4NXQ|qa3U|qd2s|6aXA)iO[\\w-]{8,}(?:\\.[\\w-]+)*')
}

function addServiceKeys(): void {
  key(TRIGGER_INNER, '', 'x', 'o', 'x[abceoprs]-[A-Za-z0-9-]{16,}') // Slack
  key(TRIGGER_DASH, 'xap', 'p', '-', '[0-9]-[A-Za-z0-9-]{20,}')
  key(TRIGGER_INNER, 'hooks', '.', 's', 'lack\\.com/services/[A-Za-z0-9/]{20,}')
  key(TRIGGER_UNDERSCORE, '[rs]', 'k', '_', '(?:live|test)_[A-Za-z0-9]{16,}') // Stripe
  key(TRIGGER_UNDERSCORE, 'whse', 'c', '_', '[A-Za-z0-9+/=]{24,}')
  key(TRIGGER_CAPITAL, '', 'S', 'G', '\\.[\\w-]{22}\\.[\\w-]{43,}') // SendGrid
  key(TRIGGER_DASH, 'ke', 'y', '-', '[0-9a-f]{32,}') // Mailgun
  key(TRIGGER_UNDERSCORE, 'shp[acp]', 'at', '_', '[0-9A-Fa-f]{32,}') // Shopify
  key(TRIGGER_UNDERSCORE, 'shps', 's', '_', '[0-9A-Fa-f]{32,}')
  key(TRIGGER_DASH, 'sq0[ac][ts]', 'p', '-', '[\\w-]{22,}') // Square
  // LaunchDarkly
  key(TRIGGER_DASH, 'ap', 'i', '-', '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b')
  key(TRIGGER_DASH, 'sd', 'k', '-', '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b')
  key(TRIGGER_UNDERSCORE, 'li', 'n', '_', 'api_[A-Za-z0-9]{40,}') // Linear
  key(TRIGGER_UNDERSCORE, 'nt', 'n', '_', '[A-Za-z0-9]{40,}') // Notion
  key(TRIGGER_UNDERSCORE, 'fig', 'd', '_', '[\\w-]{40,}') // Figma
  key(TRIGGER_CAPITAL, 'ATA', 'T', 'T', '3[\\w=-]{100,}') // Atlassian
}

/** Adds the pattern of all keys, and their triggers. */
export function addApiKey(): void {
  isFirst = true
  addModelKeys()
  addCloudKeys()
  addCodeKeys()
  addServiceKeys()
  add(')')
}
