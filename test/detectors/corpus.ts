/** A corpus of texts with values of every detector and of look-alikes, and how well detectors find them. */
import { type Builtin, builtinNames } from '../../src/engines/core/regex-builtins.ts'
import { compileMask } from '../../src/engines/core/regex-mask.ts'
import { makers, others, Random } from './values.ts'

export interface Span {
  readonly builtin: Builtin
  /** Offsets in UTF-16 units. */
  readonly start: number
  readonly end: number
}

export interface Document {
  readonly text: string
  readonly spans: readonly Span[]
}

export interface Score {
  readonly builtin: Builtin
  readonly values: number
  /** Values that were found from the first to the last character. */
  readonly found: number
  /** Spans that were found outside of values of the detector; `Secret` may also find keys. */
  readonly wrong: number
}

const sentences = [
  'Please update the record of the customer: # was wrong.',
  'I copied this from the log:\n# -- can you explain it?',
  '{"note": "#", "status": "open"}',
  'The form says # (see the attachment), and nothing else.',
  '| name | value |\n| entry | # |',
  'export VALUE="#"',
  'They wrote #, then asked again; the well-known limit of 1,000 rows applies.',
  'From: Ann\nTo: Support\nSubject: our call\n\nHello,\nas promised: #\nBest wishes',
  '2026-11-30T09:14:02Z WARN worker 3 dropped entry # after 2 attempts',
  'const entry = parse("#") // from the form of the customer',
  'Bitte prüfen Sie den Eintrag # und melden Sie sich danach bei Frau Öztürk.',
  'Veuillez vérifier la donnée # avant la fin du mois, c’est urgent.',
  'Compruebe el dato # y avísenos mañana, por favor.',
] as const

/** Sentences with a word that announces a secret. */
const secretSentences = [
  'password: #',
  'export REGISTRY_PASSWORD="#"',
  '{"client_secret": "#", "scope": "read"}',
  'const apiKey = "#"',
  'curl -H "Authorization: Bearer #" https://api.example.com/v1',
  'My token for the staging server is #, please rotate it.',
] as const

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Makes documents with `count` values of each detector and as many look-alikes of each kind. */
export function makeCorpus(seed: number, count: number): Document[] {
  const random = new Random(seed)
  const documents: Document[] = []
  const add = (value: string, builtin?: Builtin, within: readonly string[] = sentences) => {
    const [before = '', after = ''] = random.pick(within).split('#')
    const start = before.length
    const spans = builtin === undefined ? [] : [{ builtin, start, end: start + value.length }]
    documents.push({ text: `${before}${value}${after}`, spans })
  }
  for (let i = 0; i < count; i++) {
    for (const builtin of builtinNames) add(makers[builtin](random), builtin)
    add(random.text(20, `${letters}0123456789`), 'Secret', secretSentences)
    add(random.text(32, '0123456789abcdef'), 'Secret', secretSentences.slice(0, 4))
    for (const make of others) add(make(random))
  }
  return documents
}

/** Returns the spans that one detector finds in a text. */
function spansOf(builtin: Builtin): (text: string) => { start: number; end: number }[] {
  const outcome = compileMask([{ builtin, replacement: '' }])
  if (!outcome.ok) throw new Error(outcome.message)
  const stream = outcome.mask.stream()
  return (text) => {
    const found: { start: number; end: number }[] = []
    let at = 0
    stream.restart()
    // Latin-1, so that bytes are characters; the few others are not in values.
    stream.pushEdits(Buffer.from(text, 'latin1'), true, (plain, masked, rule) => {
      at += plain
      if (rule >= 0) found.push({ start: at, end: at + masked })
      at += masked
    })
    return found
  }
}

/** Keys with a known form are secrets too. */
const isOfKind = (builtin: Builtin, value: Span) =>
  value.builtin === builtin ||
  (builtin === 'Secret' && (value.builtin === 'ApiKey' || value.builtin === 'PrivateKey'))

/** Runs each detector alone over the corpus. */
export function scoreDetectors(documents: readonly Document[]): Score[] {
  return builtinNames.map((builtin) => {
    const find = spansOf(builtin)
    let [values, found, wrong] = [0, 0, 0]
    for (const { text, spans } of documents) {
      const own = spans.filter((span) => span.builtin === builtin)
      const all = find(text)
      values += own.length
      found += own.filter((value) =>
        all.some(({ start, end }) => start <= value.start && end >= value.end),
      ).length
      wrong += all.filter(
        ({ start, end }) =>
          !spans.some(
            (value) => isOfKind(builtin, value) && start < value.end && end > value.start,
          ),
      ).length
    }
    return { builtin, values, found, wrong }
  })
}
