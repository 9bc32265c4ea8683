/** One answer in pieces of different kinds, as the responses format words it: whole, or as a stream. */
import { type Ending, nameOf, type Segment, type SegmentAnswer, wholeOf } from './segments.ts'
import { json, openStream, sendEvent } from './vendor.ts'

/** Texts are parts of a message, which a segment of another kind ends. */
export function respondsSegments(segments: readonly Segment[], ending: Ending = {}): SegmentAnswer {
  const { reason, cached = 0 } = ending
  const why = reason === 'filter' ? 'content_filter' : 'max_output_tokens'
  return ({ body }, response) => {
    const items = itemsOf(segments)
    const head = {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model: String(body.model),
      parallel_tool_calls: true,
      tool_choice: 'auto',
      tools: [],
      error: null,
      incomplete_details: null,
      usage: null,
    }
    const whole = {
      ...head,
      status: reason === undefined ? 'completed' : 'incomplete',
      incomplete_details: reason === undefined ? null : { reason: why },
      usage: {
        input_tokens: 1 + cached,
        input_tokens_details: { cached_tokens: cached },
        output_tokens: 1,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 2 + cached,
      },
      output: items.map((item, at) => itemOf(item, at, true)),
    }
    if (body.stream !== true) {
      json(response, 200, whole)
      return
    }
    let sequence_number = 0
    const send = (type: string, fields: object) =>
      sendEvent(response, { type, sequence_number: sequence_number++, ...fields }, type)
    openStream(response)
    send('response.created', { response: { ...head, status: 'in_progress', output: [] } })
    for (const [output_index, item] of items.entries()) {
      send('response.output_item.added', { output_index, item: itemOf(item, output_index, false) })
      streamItem(item, output_index, send)
      send('response.output_item.done', { output_index, item: itemOf(item, output_index, true) })
    }
    send(`response.${whole.status}`, { response: whole })
    response.end()
  }
}

type Item = readonly Segment[]

function itemsOf(segments: readonly Segment[]): Item[] {
  const items: Segment[][] = []
  for (const segment of segments) {
    const last = items.at(-1)
    // Every third part begins a message of its own.
    const goesOn = segment.kind === 'text' && last?.[0]?.kind === 'text' && last.length < 3
    if (goesOn) last.push(segment)
    else items.push([segment])
  }
  return items
}

const partOf = (text: string, annotations: readonly object[] = []) => ({
  type: 'output_text',
  text,
  annotations,
  logprobs: [],
})

const summaryOf = (text: string) => ({ type: 'summary_text', text })

const sourcesOf = ({ source: url, pieces }: Segment): object[] =>
  url === undefined
    ? []
    : [
        {
          type: 'url_citation',
          url,
          title: 'A page',
          start_index: 0,
          end_index: pieces.join('').length,
        },
      ]

function itemOf(item: Item, at: number, isDone: boolean): object {
  const [first] = item
  const text = isDone ? item.map(wholeOf).join('') : ''
  const status = isDone ? 'completed' : 'in_progress'
  if (first?.kind === 'text') {
    const content = isDone
      ? item.map((segment) => partOf(wholeOf(segment), sourcesOf(segment)))
      : []
    return { id: `item_${at}`, type: 'message', role: 'assistant', status, content }
  }
  if (first?.kind === 'thinking') {
    const summary = isDone ? [summaryOf(text)] : []
    const encrypted_content = isDone ? 'gAAAAc2ln' : ''
    return { id: `item_${at}`, type: 'reasoning', status, summary, encrypted_content }
  }
  const call = { call_id: `call_${at}`, name: nameOf(at), arguments: text }
  return { id: `item_${at}`, type: 'function_call', status, ...call }
}

function streamItem(
  item: Item,
  output_index: number,
  send: (type: string, fields: object) => void,
): void {
  for (const [content_index, segment] of item.entries()) {
    const place = { item_id: `item_${output_index}`, output_index }
    const text = wholeOf(segment)
    if (segment.kind === 'text') {
      const at = { ...place, content_index }
      send('response.content_part.added', { ...at, part: partOf('') })
      for (const delta of segment.pieces) {
        send('response.output_text.delta', { ...at, delta, logprobs: [] })
      }
      for (const [annotation_index, annotation] of sourcesOf(segment).entries()) {
        const fields = { ...at, annotation_index, annotation }
        send('response.output_text.annotation.added', fields)
      }
      send('response.output_text.done', { ...at, text, logprobs: [] })
      send('response.content_part.done', { ...at, part: partOf(text, sourcesOf(segment)) })
    } else if (segment.kind === 'thinking') {
      const at = { ...place, summary_index: 0 }
      send('response.reasoning_summary_part.added', { ...at, part: summaryOf('') })
      for (const delta of segment.pieces) {
        send('response.reasoning_summary_text.delta', { ...at, delta })
      }
      send('response.reasoning_summary_text.done', { ...at, text })
      send('response.reasoning_summary_part.done', { ...at, part: summaryOf(text) })
    } else if (segment.kind === 'tool') {
      for (const delta of segment.pieces) {
        send('response.function_call_arguments.delta', { ...place, delta })
      }
      const call = { arguments: text, name: nameOf(output_index) }
      send('response.function_call_arguments.done', { ...place, ...call })
    }
  }
}
