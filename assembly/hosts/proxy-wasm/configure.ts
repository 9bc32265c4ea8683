// Reads the configuration of the filter: JSON in the words of GatewayPolicy and GatewayBackend.
import { DETECT_API_KEY, DETECT_VAT, DETECT_TAX_ID, DETECT_NIR, DETECT_NIF, DETECT_FISCAL_CODE, DETECT_BSN, DETECT_PESEL, DETECT_PERSONNUMMER, DETECT_NINO, DETECT_NHS, DETECT_AADHAAR, DETECT_CPF, DETECT_CNPJ, DETECT_CARD, DETECT_EMAIL, DETECT_IBAN, DETECT_IP, DETECT_PHONE, DETECT_PRIVATE_KEY, DETECT_SECRET, DETECT_SIN, DETECT_SSN, REGEX_CASE_INSENSITIVE, REGEX_MATCH_ONLY } from '../../abi'
import { addDetector, addPattern, addWords, freeSet, newSet } from '../../regex/set'
import { regexCompile, regexFree } from '../../regex/index'
import { append, appendAscii, appendByte, appendNumber, Bytes, clear, clearFailure, failure, newBytes, newRecord } from '../../texts/bytes'
import { addGuard, freeGuards, newGuards } from '../../texts/chain'
import { TEXTS_COMPLETIONS, TEXTS_EMBEDDINGS, TEXTS_MESSAGES, TEXTS_RESPONSES, TEXTS_TOKEN_COUNT } from '../../texts/abi'
import { parseDocument } from '../../texts/parse'
import { node, textLength, textStart, readText, isKind, KIND_STRING, KIND_TRUE } from '../../texts/tape'
import { checkFields, clearProblem, copyText, countIn, field, firstItem, isGood, isText, newText, refuse } from './fields'
import { CHANGE_ADD, CHANGE_REMOVE, CHANGE_SET } from './host'
import { Limit, newLimit } from './limits'
import { plainPath } from './paths'
import {
  Config, Ending, FORMAT_PASS, FORMAT_UNMAPPED, HeaderChange, HeaderMatch, HostMatch, isNone, newRule, PATH_EXACT, PATH_PATTERN,
  PATH_PREFIX, Refusal, Rule,
} from './rules'

const DEFAULT_BODY: i64 = 16 << 20

/** Reads a configuration; if it is wrong, `problem` says why. */
export function readConfig(text: Bytes): Config {
  clearProblem()
  clearFailure()
  const config = changetype<Config>(newRecord(offsetof<Config>()))
  config.users = 1
  const root = parseDocument(text.data, text.used)
  if (root == 0) {
    refuse(0, 'not JSON')
    return config
  }
  checkFields(root, 'rules maxBodyBytes holdHeaders ')
  config.maxBody = <i32>countIn(field(root, 'maxBodyBytes'), 1, 1 << 29, DEFAULT_BODY)
  config.holdsHeaders = isKind(field(root, 'holdHeaders'), KIND_TRUE)
  let last = changetype<Rule>(0)
  for (let item = firstItem(field(root, 'rules')); item != 0 && isGood(); item = node(item).next) {
    const rule = readRule(item)
    if (isNone(last)) config.rules = rule
    else last.next = rule
    last = rule
  }
  if (isNone(last)) refuse(root, 'rules: expected at least one rule')
  if (failure != 0) refuse(0, 'out of memory')
  return config
}

function readRule(object: i32): Rule {
  const rule = newRule()
  checkFields(object, 'name hostnames match rateLimit headerModifiers ai unusable ')
  copyText(field(object, 'name'), rule.name)
  rule.isUnusable = isKind(field(object, 'unusable'), KIND_TRUE)
  readHosts(rule, field(object, 'hostnames'))
  readMatch(rule, field(object, 'match'))
  readLimits(rule, field(object, 'rateLimit'))
  const changes = field(object, 'headerModifiers')
  checkFields(changes, 'request response ')
  rule.requestChanges = readChanges(field(changes, 'request'))
  rule.responseChanges = readChanges(field(changes, 'response'))
  readModel(rule, field(object, 'ai'))
  return rule
}

function readHosts(rule: Rule, list: i32): void {
  for (let item = firstItem(list); item != 0; item = node(item).next) {
    const host = changetype<HostMatch>(newRecord(offsetof<HostMatch>()))
    host.name = newText(item)
    host.isWildcard = host.name.used > 1 && load<u16>(host.name.data) == 0x2e2a
    if (host.isWildcard) memory.copy(host.name.data, host.name.data + 1, --host.name.used)
    host.next = rule.hosts
    rule.hosts = host
  }
}

function compilePattern(index: i32, flags: i32): i32 {
  if (!isKind(index, KIND_STRING)) {
    refuse(index, 'expected a string')
    return 0
  }
  readText(index)
  const regex = regexCompile(textStart, textLength, flags)
  if (regex <= 0) refuse(index, 'the pattern cannot be compiled')
  return regex
}

function readMatch(rule: Rule, match: i32): void {
  checkFields(match, 'path method headers ')
  copyText(field(match, 'method'), rule.method)
  const path = field(match, 'path')
  checkFields(path, 'type value ')
  if (path != 0) {
    const type = field(path, 'type')
    const value = field(path, 'value')
    copyText(value, rule.path)
    if (isText(type, 'Exact')) rule.pathKind = PATH_EXACT
    else if (isText(type, 'PathPrefix')) rule.pathKind = PATH_PREFIX
    else if (isText(type, 'RegularExpression')) {
      rule.pathKind = PATH_PATTERN
      rule.pathRegex = compilePattern(value, REGEX_MATCH_ONLY)
      rule.plainRegex = compilePattern(value, REGEX_MATCH_ONLY | REGEX_CASE_INSENSITIVE)
    } else refuse(path, 'type must be Exact, PathPrefix or RegularExpression')
    const isKept = rule.pathKind == PATH_PATTERN || plainPath(rule.path.data, rule.path.used, rule.plainPath)
    if (!isKept) refuse(value, 'a path must not have dot segments or control characters')
  }
  for (let item = firstItem(field(match, 'headers')); item != 0 && isGood(); item = node(item).next) {
    checkFields(item, 'type name value ')
    const one = changetype<HeaderMatch>(newRecord(offsetof<HeaderMatch>()))
    one.name = newText(field(item, 'name'))
    one.value = newText(field(item, 'value'))
    const type = field(item, 'type')
    if (isText(type, 'RegularExpression')) one.regex = compilePattern(field(item, 'value'), REGEX_MATCH_ONLY)
    else if (type != 0 && !isText(type, 'Exact')) refuse(type, 'type must be Exact or RegularExpression')
    one.next = rule.headers
    rule.headers = one
  }
}

// --- limits and headers --------------------------------------------------------------------------

function secondsOf(unit: i32): i64 {
  if (isText(unit, 'Seconds')) return 1
  if (isText(unit, 'Minutes')) return 60
  if (!isText(unit, 'Hours')) refuse(unit, 'unit must be Seconds, Minutes or Hours')
  return 3600
}

function readLimits(rule: Rule, limits: i32): void {
  checkFields(limits, 'name local ')
  const owner = field(limits, 'name') == 0 ? rule.name : newText(field(limits, 'name'))
  let last = changetype<Limit>(0)
  let position = 0
  const name = newBytes()
  for (let item = firstItem(field(limits, 'local')); item != 0 && isGood(); item = node(item).next) {
    checkFields(item, 'requests tokens unit burst ')
    const requests = field(item, 'requests')
    const tokens = field(item, 'tokens')
    if ((requests == 0) == (tokens == 0)) refuse(item, 'expected either requests or tokens')
    const rate = countIn(requests != 0 ? requests : tokens, 1, 1_000_000_000, 1)
    const burst = countIn(field(item, 'burst'), 0, 1_000_000_000, 0)
    clear(name)
    appendNumber(name, position++)
    appendByte(name, 47)
    append(name, owner.data, owner.used)
    const seconds = secondsOf(field(item, 'unit'))
    if (!isGood()) return
    const limit = newLimit(name, tokens != 0, rate, seconds, burst)
    if (isNone(last)) rule.limits = limit
    else last.next = limit
    last = limit
  }
}

/** Changes in the order set, add, remove. */
function readChanges(filter: i32): HeaderChange {
  checkFields(filter, 'set add remove ')
  const removed = addChanges(changetype<HeaderChange>(0), field(filter, 'remove'), CHANGE_REMOVE)
  const added = addChanges(removed, field(filter, 'add'), CHANGE_ADD)
  return addChanges(added, field(filter, 'set'), CHANGE_SET)
}

function addChanges(before: HeaderChange, list: i32, what: i32): HeaderChange {
  let head = before
  for (let item = firstItem(list); item != 0 && isGood(); item = node(item).next) {
    const change = changetype<HeaderChange>(newRecord(offsetof<HeaderChange>()))
    change.what = what
    if (what == CHANGE_REMOVE) {
      change.name = newText(item)
      change.value = newBytes()
    } else {
      checkFields(item, 'name value ')
      change.name = newText(field(item, 'name'))
      change.value = newText(field(item, 'value'))
    }
    if (change.name.used == 0) refuse(item, 'expected the name of a header')
    change.next = head
    head = change
  }
  return head
}

// --- models --------------------------------------------------------------------------------------

function readFormat(type: i32): i32 {
  if (isText(type, 'Completions')) return TEXTS_COMPLETIONS
  if (isText(type, 'Messages')) return TEXTS_MESSAGES
  if (isText(type, 'Responses')) return TEXTS_RESPONSES
  if (isText(type, 'Embeddings')) return TEXTS_EMBEDDINGS
  if (isText(type, 'VendorCTokenCount')) return TEXTS_TOKEN_COUNT
  if (!isText(type, 'Passthrough') && !isText(type, 'Models') && !isText(type, 'Realtime')) refuse(type, 'unknown route type')
  return FORMAT_PASS
}

function readModel(rule: Rule, model: i32): void {
  if (model == 0) return
  checkFields(model, 'routes promptGuard ')
  rule.isModel = true
  rule.defaultFormat = FORMAT_UNMAPPED
  let last = changetype<Ending>(0)
  for (let item = firstItem(field(model, 'routes')); item != 0 && isGood(); item = node(item).next) {
    checkFields(item, 'ending type ')
    rule.hasRoutes = true
    const ending = changetype<Ending>(newRecord(offsetof<Ending>()))
    ending.text = newText(field(item, 'ending'))
    ending.format = readFormat(field(item, 'type'))
    if (ending.text.used == 1 && load<u8>(ending.text.data) == 42) rule.defaultFormat = ending.format
    else {
      if (isNone(last)) rule.endings = ending
      else last.next = ending
      last = ending
    }
  }
  const guard = field(model, 'promptGuard')
  checkFields(guard, 'request response ')
  rule.requestGuards = readGuards(rule, field(guard, 'request'), true)
  rule.responseGuards = readGuards(rule, field(guard, 'response'), false)
}

function readGuards(rule: Rule, list: i32, isRequest: bool): i32 {
  let item = firstItem(list)
  if (item == 0) return 0
  const guards = newGuards()
  if (guards < 0) refuse(item, 'out of memory')
  let last = changetype<Refusal>(0)
  for (; item != 0 && isGood(); item = node(item).next) {
    checkFields(item, 'regex response ')
    const refusal = readRefusal(field(item, 'response'))
    const regex = field(item, 'regex')
    if (regex == 0) refuse(item, 'expected regex')
    checkFields(regex, 'matches builtins words action ')
    const action = field(regex, 'action')
    const rejects = isText(action, 'Reject')
    if (action != 0 && !rejects && !isText(action, 'Mask')) refuse(action, 'action must be Mask or Reject')
    const set = readSet(regex)
    if (isGood() && addGuard(guards, set, rejects && isRequest) < 0) refuse(item, 'too many guards')
    freeSet(set)
    if (!isRequest) continue
    if (isNone(last)) rule.refusals = refusal
    else last.next = refusal
    last = refusal
  }
  return guards
}

function readRefusal(response: i32): Refusal {
  checkFields(response, 'message statusCode ')
  const refusal = changetype<Refusal>(newRecord(offsetof<Refusal>()))
  refusal.status = <i32>countIn(field(response, 'statusCode'), 200, 599, 403)
  refusal.message = newText(field(response, 'message'))
  if (refusal.message.used == 0) appendAscii(refusal.message, 'The request was rejected due to inappropriate content')
  return refusal
}

const replacement: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

function readSet(regex: i32): i32 {
  const set = newSet()
  if (set < 0) refuse(regex, 'out of memory')
  for (let item = firstItem(field(regex, 'matches')); item != 0 && isGood(); item = node(item).next) {
    const pattern = compilePattern(item, 0)
    clear(replacement)
    appendAscii(replacement, '<masked>')
    if (isGood() && addPattern(set, pattern, replacement.data, replacement.used) < 0) refuse(item, 'more than 64 patterns and builtins')
    if (pattern > 0) regexFree(pattern)
  }
  for (let item = firstItem(field(regex, 'builtins')); item != 0 && isGood(); item = node(item).next) {
    const kind = readBuiltin(item)
    if (isGood() && addDetector(set, kind, replacement.data, replacement.used) < 0) refuse(item, 'more than 64 patterns and builtins')
  }
  readWords(set, field(regex, 'words'))
  return set
}

const word: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const words: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

function readWords(set: i32, list: i32): void {
  if (firstItem(list) == 0) return
  clear(words)
  for (let item = firstItem(list); item != 0 && isGood(); item = node(item).next) {
    copyText(item, word)
    append(words, word.data, word.used)
    appendByte(words, 10)
  }
  clear(replacement)
  appendAscii(replacement, '<masked>')
  if (isGood() && addWords(set, words.data, words.used, replacement.data, replacement.used) < 0) refuse(list, 'more than 10,000 words or 262,144 bytes, or a word of more than 256 bytes')
}

/** DETECT_*, and its text in `replacement`. */
function readBuiltin(item: i32): i32 {
  clear(replacement)
  if (isText(item, 'Ssn')) return builtin(DETECT_SSN, '<SSN>')
  if (isText(item, 'CreditCard')) return builtin(DETECT_CARD, '<CREDIT_CARD>')
  if (isText(item, 'PhoneNumber')) return builtin(DETECT_PHONE, '<PHONE_NUMBER>')
  if (isText(item, 'Email')) return builtin(DETECT_EMAIL, '<EMAIL_ADDRESS>')
  if (isText(item, 'CaSin')) return builtin(DETECT_SIN, '<CA_SIN>')
  if (isText(item, 'Iban')) return builtin(DETECT_IBAN, '<IBAN>')
  if (isText(item, 'IpAddress')) return builtin(DETECT_IP, '<IP_ADDRESS>')
  if (isText(item, 'ApiKey')) return builtin(DETECT_API_KEY, '<API_KEY>')
  if (isText(item, 'PrivateKey')) return builtin(DETECT_PRIVATE_KEY, '<PRIVATE_KEY>')
  if (isText(item, 'VatNumber')) return builtin(DETECT_VAT, '<VAT_NUMBER>')
  if (isText(item, 'DeTaxId')) return builtin(DETECT_TAX_ID, '<DE_TAX_ID>')
  if (isText(item, 'FrNir')) return builtin(DETECT_NIR, '<FR_NIR>')
  if (isText(item, 'EsNif')) return builtin(DETECT_NIF, '<ES_NIF>')
  if (isText(item, 'ItFiscalCode')) return builtin(DETECT_FISCAL_CODE, '<IT_FISCAL_CODE>')
  if (isText(item, 'NlBsn')) return builtin(DETECT_BSN, '<NL_BSN>')
  if (isText(item, 'PlPesel')) return builtin(DETECT_PESEL, '<PL_PESEL>')
  if (isText(item, 'SePersonnummer')) return builtin(DETECT_PERSONNUMMER, '<SE_PERSONNUMMER>')
  if (isText(item, 'UkNino')) return builtin(DETECT_NINO, '<UK_NINO>')
  if (isText(item, 'UkNhs')) return builtin(DETECT_NHS, '<UK_NHS>')
  if (isText(item, 'InAadhaar')) return builtin(DETECT_AADHAAR, '<IN_AADHAAR>')
  if (isText(item, 'BrCpf')) return builtin(DETECT_CPF, '<BR_CPF>')
  if (isText(item, 'BrCnpj')) return builtin(DETECT_CNPJ, '<BR_CNPJ>')
  if (isText(item, 'Secret')) return builtin(DETECT_SECRET, '<SECRET>')
  refuse(item, 'unknown builtin')
  return -1
}

function builtin(kind: i32, text: string): i32 {
  appendAscii(replacement, text)
  return kind
}

// --- release -------------------------------------------------------------------------------------

/** Gives one use up; the last one frees what takes most memory: patterns and guards. */
export function releaseConfig(config: Config): void {
  if (isNone(config) || --config.users > 0) return
  for (let rule = config.rules; !isNone(rule); rule = rule.next) {
    if (rule.pathRegex > 0) regexFree(rule.pathRegex)
    if (rule.plainRegex > 0) regexFree(rule.plainRegex)
    for (let one = rule.headers; !isNone(one); one = one.next) if (one.regex > 0) regexFree(one.regex)
    if (rule.requestGuards > 0) freeGuards(rule.requestGuards)
    if (rule.responseGuards > 0) freeGuards(rule.responseGuards)
  }
}
