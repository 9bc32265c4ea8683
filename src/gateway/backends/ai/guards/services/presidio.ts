/** Presidio: the analyzer finds personal data, and the gateway masks it. Offsets are code points. */
import { isObject, numberAt, stringAt } from '../../../../../engines/messages/json/json.ts'
import { guardFailure } from '../guard-call.ts'
import type { PresidioConfig } from './config.ts'
import { type GuardService, passes, type Verdict } from './service.ts'
import { piecesOf } from './split.ts'

/** Servers accept bodies of about 1 MB, and a character may take 4 bytes. */
const limits = { length: 100_000, parts: 1 }

export const presidio: GuardService<PresidioConfig> = {
  masks: ({ rejects }) => !rejects,
  host: () => undefined,
  split: (texts) => piecesOf(texts, limits),
  call: ({ parts }, _, { language, entities, scoreThreshold }) => ({
    path: '/analyze',
    body: {
      text: parts[0]?.content ?? '',
      language,
      ...(entities !== undefined && { entities }),
      ...(scoreThreshold !== undefined && { score_threshold: scoreThreshold }),
    },
  }),
  verdict(answer, { parts }, { rejects }): Verdict {
    const text = parts[0]?.content ?? ''
    if (!Array.isArray(answer)) throw guardFailure('Presidio gave no list of findings')
    const spans = answer.map((finding) => spanOf(finding, text.length))
    if (spans.length === 0) return passes
    const matches = spans.map(({ type }) => type)
    return rejects ? { rejects, matches } : { rejects, matches, masked: [maskSpans(text, spans)] }
  },
}

/** A finding, with positions in code points. */
interface Span {
  readonly type: string
  readonly start: number
  readonly end: number
}

function spanOf(finding: unknown, length: number): Span {
  const type = stringAt(finding, 'entity_type')
  const start = numberAt(finding, 'start')
  const end = numberAt(finding, 'end')
  const isKnown = isObject(finding) && type !== undefined && isIndex(start) && isIndex(end)
  if (!isKnown || start >= end || end > length) {
    throw guardFailure('Presidio gave a finding that is not in the text')
  }
  return { type, start, end }
}

const isIndex = (value: number | undefined): value is number =>
  value !== undefined && Number.isInteger(value) && value >= 0

/** Replaces each span by its type. Spans that overlap become one, with the type of the first. */
function maskSpans(text: string, spans: readonly Span[]): string {
  const sorted = spans.toSorted((a, b) => a.start - b.start || b.end - a.end)
  const written: string[] = []
  let unit = 0
  let point = 0
  /** Moves to a code point, and returns what was passed. */
  const advance = (to: number): string => {
    const from = unit
    for (; point < to; point++) unit += (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1
    return text.slice(from, unit)
  }
  let maskedUntil = 0
  for (const { type, start, end } of sorted) {
    if (start >= maskedUntil) written.push(advance(start), `<${type}>`)
    if (end > maskedUntil) {
      advance(end)
      maskedUntil = end
    }
  }
  return written.join('') + text.slice(unit)
}
