/** A corpus of texts with values of every detector and of look-alikes, and how well detectors find them. */
import { type Builtin, builtinNames, compileMask } from '../../src/engines/core/regex-mask.ts'
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
  /** Spans that were found outside of values of the detector. */
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
] as const

/** Makes documents with `count` values of each detector and as many look-alikes of each kind. */
export function makeCorpus(seed: number, count: number): Document[] {
  const random = new Random(seed)
  const documents: Document[] = []
  const add = (value: string, builtin?: Builtin) => {
    const [before = '', after = ''] = random.pick(sentences).split('#')
    const start = before.length
    const spans = builtin === undefined ? [] : [{ builtin, start, end: start + value.length }]
    documents.push({ text: `${before}${value}${after}`, spans })
  }
  for (let i = 0; i < count; i++) {
    for (const builtin of builtinNames) add(makers[builtin](random), builtin)
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
    // The corpus is ASCII, so that bytes are characters.
    stream.pushEdits(Buffer.from(text), true, (plain, masked, rule) => {
      at += plain
      if (rule >= 0) found.push({ start: at, end: at + masked })
      at += masked
    })
    return found
  }
}

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
        ({ start, end }) => !own.some((value) => start < value.end && end > value.start),
      ).length
    }
    return { builtin, values, found, wrong }
  })
}
