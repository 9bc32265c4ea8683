/**
 * Adds up what the requests of a batch have used and cost, while a client fetches the results, one JSON object a line:
 *
 *   {"custom_id":"a","result":{"type":"succeeded","message":{…}}}
 *   {"custom_id":"b","response":{"status_code":200,"body":{…}},"error":null}
 */
import type { Usage } from '../../../../engines/messages/chat.ts'
import { detailsOfResponse } from '../../../../engines/messages/common/response-details.ts'
import type { Cost, CostStatus } from '../../../../engines/messages/cost/cost.ts'
import type { Money } from '../../../../engines/messages/cost/money.ts'
import type { ClientFormat } from '../../../../engines/messages/format.ts'
import { clientFormats } from '../../../../engines/messages/formats/index.ts'
import { objectAt, parseJson, stringAt, utf8Text } from '../../../../engines/messages/json/json.ts'
import type { BodyTransform } from '../../../../ground/exchange/exchange.ts'
import { costOfCall, type PricedCall } from './call-cost.ts'

/** Maximum size of a line that is read; the usage of longer ones is not known. */
const maxLine = 16 * 1024 * 1024
const lineFeed = 0x0a

/** Formats of responses by their `object`. */
const formats: ReadonlyMap<string | undefined, ClientFormat> = new Map<
  string | undefined,
  ClientFormat
>([
  ['chat.completion', clientFormats.Completions],
  ['response', clientFormats.Responses],
  ['text_completion', clientFormats.TextCompletions],
  ['list', clientFormats.Embeddings],
])

const counts = [
  ...['input', 'uncachedInput', 'output', 'cacheRead', 'cacheReadAudio'],
  ...['cacheWrite', 'cacheWrite1h', 'reasoning'],
] as const
type Counts = Readonly<Record<string, number | undefined>>

const sumOf = (before: Counts = {}, more: Counts = {}): Counts => {
  const sum: Record<string, number | undefined> = { ...before }
  for (const [name, count = 0] of Object.entries(more)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/** Returns the counts of two responses together. */
function addUsage(before: Usage, more: Usage): Usage {
  const counted = (usage: Usage): Counts =>
    Object.fromEntries(
      counts.flatMap((name) => {
        const count = (usage as unknown as Counts)[name]
        return count === undefined ? [] : [[name, count]]
      }),
    )
  return {
    ...before,
    ...(sumOf(counted(before), counted(more)) as Partial<Usage>),
    ...((before.kinds ?? more.kinds) && {
      kinds: sumOf(before.kinds, more.kinds) as Record<string, number>,
    }),
    ...((before.calls ?? more.calls) && {
      calls: sumOf(before.calls, more.calls) as Record<string, number>,
    }),
  }
}

export class BatchResults implements BodyTransform {
  /** Identifies the batch at all gateways. */
  readonly id: string
  /** Number of results with a usage. They come in the same order each time. */
  results = 0
  usage: Usage | undefined
  /** The model of all results; `several` if they differ. */
  model: string | undefined
  readonly #call: Pick<PricedCall, 'catalog' | 'provider' | 'context'>
  readonly #pieces: Uint8Array[] = []
  #size = 0
  #total: Money = 0n
  #status: CostStatus = 'exact'

  constructor(id: string, call: Pick<PricedCall, 'catalog' | 'provider' | 'context'>) {
    this.id = id
    this.#call = call
  }

  /** What all results have cost; undefined if none has a usage. */
  get cost(): Cost | undefined {
    const { usage } = this
    return usage && { status: this.#status, total: this.#total, usage, rates: undefined }
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    let start = 0
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, start)) {
      this.#add(chunk.subarray(start, at))
      this.#endLine()
      start = at + 1
    }
    if (start < chunk.length) this.#add(chunk.slice(start))
    emit(chunk)
  }

  end(): void {
    this.#endLine()
  }

  #add(piece: Uint8Array): void {
    this.#size += piece.length
    if (this.#size <= maxLine) this.#pieces.push(piece)
    else this.#pieces.length = 0
  }

  #endLine(): void {
    const isLong = this.#size > maxLine
    const line = Buffer.concat(this.#pieces)
    this.#pieces.length = 0
    this.#size = 0
    if (isLong) this.#status = 'partial'
    else if (line.length > 0) this.#read(parseJson(utf8Text(line)))
  }

  #read(line: unknown): void {
    const message = objectAt(objectAt(line, 'result'), 'message')
    const body = message ?? objectAt(objectAt(line, 'response'), 'body')
    const format = message ? clientFormats.Messages : formats.get(stringAt(body, 'object'))
    const details = format && detailsOfResponse(format, body)
    if (details?.usage === undefined) return
    const { model, usage } = details
    const priced = { ...this.#call, outgoing: undefined, details: { model, serviceTier: 'batch' } }
    const { status, total } = costOfCall(priced, usage)
    this.#total += total
    if (status !== 'exact') {
      const isUnknown = status === 'unknown' && (this.results === 0 || this.#status === 'unknown')
      this.#status = isUnknown ? 'unknown' : 'partial'
    } else if (this.#status === 'unknown') this.#status = 'partial'
    this.results++
    this.usage = this.usage === undefined ? usage : addUsage(this.usage, usage)
    this.model = this.model === undefined || this.model === model ? model : 'several'
  }
}
