/** Streams in the responses format with many events or items of one kind. */
import { data, type StreamBuilders, times } from './items.ts'

const rs = data({
  type: 'response.created',
  response: { id: 'r', model: 'm', status: 'in_progress', output: [] },
})
const re = data({
  type: 'response.completed',
  response: {
    id: 'r',
    model: 'm',
    status: 'completed',
    output: [],
    usage: { input_tokens: 1, output_tokens: 2 },
  },
})
const added = (i: number, item: unknown) =>
  data({ type: 'response.output_item.added', output_index: i, item })
const done = (i: number, item: unknown) =>
  data({ type: 'response.output_item.done', output_index: i, item })
const fcall = (i: number) => ({
  type: 'function_call',
  id: `fc${i}`,
  call_id: `c${i}`,
  name: 'f',
  arguments: '',
})
export const eventsOfResponses: StreamBuilders = {
  calls: (n) =>
    rs +
    times(
      n,
      (i) =>
        added(i, fcall(i)) +
        data({
          type: 'response.function_call_arguments.delta',
          output_index: i,
          item_id: `fc${i}`,
          delta: '{}',
        }) +
        done(i, fcall(i)),
    ).join('') +
    re,
  callsOpen: (n) =>
    rs +
    times(
      n,
      (i) =>
        added(i, fcall(i)) +
        data({
          type: 'response.function_call_arguments.delta',
          output_index: i,
          item_id: `fc${i}`,
          delta: '{}',
        }),
    ).join('') +
    re,
  texts: (n) =>
    rs +
    times(n, (_i) =>
      data({
        type: 'response.output_text.delta',
        output_index: 0,
        content_index: 0,
        item_id: 'i',
        delta: 'x',
      }),
    ).join('') +
    re,
  textItems: (n) =>
    rs +
    times(
      n,
      (i) =>
        added(i, { type: 'message', role: 'assistant', content: [] }) +
        data({
          type: 'response.output_text.delta',
          output_index: i,
          content_index: 0,
          item_id: `i${i}`,
          delta: 'x',
        }),
    ).join('') +
    re,
  textParts: (n) =>
    rs +
    times(n, (i) =>
      data({
        type: 'response.output_text.delta',
        output_index: 0,
        content_index: i,
        item_id: 'i',
        delta: 'x',
      }),
    ).join('') +
    re,
  annotations: (n) =>
    rs +
    times(n, (i) =>
      data({
        type: 'response.output_text.annotation.added',
        output_index: 0,
        content_index: 0,
        annotation_index: i,
        annotation: {
          type: 'url_citation',
          url: `http://x/${i}`,
          title: 't',
          start_index: 0,
          end_index: 1,
        },
      }),
    ).join('') +
    re,
  reasoning: (n) =>
    rs +
    times(
      n,
      (i) =>
        added(i, { type: 'reasoning', id: `r${i}`, summary: [] }) +
        data({
          type: 'response.reasoning_summary_text.delta',
          output_index: i,
          summary_index: 0,
          delta: 'x',
        }) +
        done(i, {
          type: 'reasoning',
          id: `r${i}`,
          encrypted_content: 'e',
          summary: [{ type: 'summary_text', text: 'x' }],
        }),
    ).join('') +
    re,
  reasoningParts: (n) =>
    rs +
    times(n, (i) =>
      data({
        type: 'response.reasoning_summary_text.delta',
        output_index: 0,
        summary_index: i,
        delta: 'x',
      }),
    ).join('') +
    re,
  refusal: (n) =>
    rs +
    times(n, (_i) =>
      data({ type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'x' }),
    ).join('') +
    re,
  wholeOutput: (n) =>
    rs +
    data({
      type: 'response.completed',
      response: {
        id: 'r',
        model: 'm',
        status: 'completed',
        output: times(n, (i) => ({ ...fcall(i), arguments: '{}' })),
        usage: { input_tokens: 1, output_tokens: 2 },
      },
    }),
  alternating: (n) =>
    rs +
    times(n, (i) =>
      i % 2
        ? data({
            type: 'response.output_text.delta',
            output_index: 0,
            content_index: 0,
            delta: 'x',
          })
        : data({
            type: 'response.reasoning_summary_text.delta',
            output_index: 1,
            summary_index: 0,
            delta: 'x',
          }),
    ).join('') +
    re,
}
