/** Streams in the messages format with many events or items of one kind. */
import { data, type StreamBuilders, times } from './items.ts'

const ms = data({
  type: 'message_start',
  message: {
    id: 'm',
    model: 'x',
    role: 'assistant',
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  },
})
const me =
  data({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }) +
  data({ type: 'message_stop' })
const st = (index: number, content_block: unknown) =>
  data({ type: 'content_block_start', index, content_block })
const de = (index: number, delta: unknown) => data({ type: 'content_block_delta', index, delta })
const sp = (index: number) => data({ type: 'content_block_stop', index })
const tu = (i: number) => ({ type: 'tool_use', id: `c${i}`, name: 'f', input: {} })
export const eventsOfMessages: StreamBuilders = {
  calls: (n) =>
    ms +
    times(
      n,
      (i) => st(i, tu(i)) + de(i, { type: 'input_json_delta', partial_json: '{}' }) + sp(i),
    ).join('') +
    me,
  callsOpen: (n) =>
    ms +
    times(n, (i) => st(i, tu(i)) + de(i, { type: 'input_json_delta', partial_json: '{}' })).join(
      '',
    ) +
    me,
  textOpen: (n) => ms + times(n, (i) => st(i, { type: 'text', text: 'x' })).join('') + me,
  texts: (n) =>
    ms +
    times(
      n,
      (i) => st(i, { type: 'text', text: '' }) + de(i, { type: 'text_delta', text: 'x' }) + sp(i),
    ).join('') +
    me,
  citations: (n) =>
    ms +
    st(0, { type: 'text', text: '' }) +
    times(n, (i) =>
      de(0, {
        type: 'citations_delta',
        citation: {
          type: 'web_search_result_location',
          url: `http://x/${i}`,
          title: 't',
          cited_text: 'x',
          encrypted_index: 'e',
        },
      }),
    ).join('') +
    sp(0) +
    me,
  citationsBlocks: (n) =>
    ms +
    times(n, (i) =>
      de(i, {
        type: 'citations_delta',
        citation: {
          type: 'web_search_result_location',
          url: `http://x/${i}`,
          title: 't',
          cited_text: 'x',
          encrypted_index: 'e',
        },
      }),
    ).join('') +
    me,
  thinking: (n) =>
    ms +
    times(
      n,
      (i) =>
        st(i, { type: 'thinking', thinking: '' }) +
        de(i, { type: 'thinking_delta', thinking: 'x' }) +
        de(i, { type: 'signature_delta', signature: 's' }),
    ).join('') +
    me,
  signatures: (n) =>
    ms +
    st(0, { type: 'thinking', thinking: '' }) +
    times(n, (_i) => de(0, { type: 'signature_delta', signature: 's' })).join('') +
    me,
  redacted: (n) =>
    ms + times(n, (i) => st(i, { type: 'redacted_thinking', data: 'x' })).join('') + me,
  usage: (n) =>
    ms +
    times(n, (i) =>
      data({ type: 'message_delta', delta: {}, usage: { output_tokens: i, [`k${i}`]: 3 } }),
    ).join('') +
    me,
  usageTools: (n) =>
    ms +
    times(n, (i) =>
      data({
        type: 'message_delta',
        delta: {},
        usage: { output_tokens: i, server_tool_use: { [`k${i}_requests`]: 3 } },
      }),
    ).join('') +
    me,
  stops: (n) =>
    ms +
    times(
      n,
      (i) =>
        st(i, { type: 'text', text: 'x' }) +
        data({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }),
    ).join('') +
    me,
  alternating: (n) =>
    ms +
    times(n, (i) =>
      de(
        i % 2,
        i % 2 ? { type: 'text_delta', text: 'x' } : { type: 'thinking_delta', thinking: 'x' },
      ),
    ).join('') +
    me,
  pings: (n) => ms + data({ type: 'ping' }).repeat(n) + me,
}
