/** Streams in the completions format with many events or items of one kind. */
import { data, type StreamBuilders, times } from './items.ts'

const ch = (delta: unknown, more: object = {}) =>
  data({ id: 'c', choices: [{ index: 0, delta, ...more }] })
const call = (index: number, id: string | undefined, args = '{}') => ({
  index,
  id,
  function: { name: id && 'f', arguments: args },
})
const end = `${ch({}, { finish_reason: 'stop' })}data: [DONE]\n\n`
export const eventsOfCompletions: StreamBuilders = {
  text: (n) => ch({ content: 'x' }).repeat(n) + end,
  calls: (n) => times(n, (i) => ch({ tool_calls: [call(i, `c${i}`)] })).join('') + end,
  callsOneEvent: (n) => ch({ tool_calls: times(n, (i) => call(i, `c${i}`)) }) + end,
  callsSameIndex: (n) => times(n, (i) => ch({ tool_calls: [call(0, `c${i}`)] })).join('') + end,
  interleaved: (n) =>
    times(n, (i) => ch({ tool_calls: [call(i % (n / 4), `c${i % (n / 4)}`, '1')] })).join('') + end,
  args: (n) =>
    ch({ tool_calls: [call(0, 'c', '"')] }) +
    times(n, () => ch({ tool_calls: [call(0, undefined, 'x')] })).join('') +
    end,
  unnamed: (n) =>
    times(n, (i) => ch({ tool_calls: [{ index: i, function: { arguments: '{}' } }] })).join('') +
    end,
  callsAndText: (n) =>
    times(n, (i) => ch(i % 2 ? { content: 'x' } : { tool_calls: [call(i, `c${i}`)] })).join('') +
    end,
  reasoning: (n) =>
    times(n, (i) => ch(i % 2 ? { content: 'x' } : { reasoning_content: 'y' })).join('') + end,
  thinkingBlocks: (n) =>
    times(n, (i) =>
      ch({
        reasoning_content: 'x',
        thinking_blocks: [{ type: 'thinking', thinking: 'x', signature: `s${i}` }],
      }),
    ).join('') + end,
  annotations: (n) =>
    times(n, (i) =>
      ch({
        content: 'x',
        annotations: [
          {
            type: 'url_citation',
            url_citation: { url: `http://x/${i}`, title: 't', start_index: 0, end_index: 1 },
          },
        ],
      }),
    ).join('') + end,
  annotationsNoRange: (n) =>
    times(n, (i) =>
      ch({
        content: 'x',
        annotations: [{ type: 'url_citation', url_citation: { url: `http://x/${i}`, title: 't' } }],
      }),
    ).join('') + end,
  choices: (n) =>
    times(n, (i) => data({ id: 'c', choices: [{ index: i, delta: { content: 'x' } }] })).join('') +
    end,
  choicesOneEvent: (n) =>
    data({ id: 'c', choices: times(n, (i) => ({ index: n - i, delta: { content: 'x' } })) }) + end,
  refusal: (n) => ch({ refusal: 'x' }).repeat(n) + end,
  usage: (n) =>
    times(n, (i) =>
      data({
        id: 'c',
        choices: [],
        usage: { prompt_tokens: 1, completion_tokens: i, [`k${i}`]: 3 },
      }),
    ).join('') + end,
  usageDetails: (n) =>
    times(n, (i) =>
      data({
        id: 'c',
        choices: [],
        usage: {
          prompt_tokens: 1,
          completion_tokens: i,
          prompt_tokens_details: { [`k${i}_tokens`]: 3 },
        },
      }),
    ).join('') + end,
  images: (n) =>
    times(n, (_i) =>
      ch({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }] }),
    ).join('') + end,
  stops: (n) =>
    times(
      n,
      (i) => ch({ tool_calls: [call(i, `c${i}`)] }) + ch({}, { finish_reason: 'stop' }),
    ).join('') + end,
  comments: (n) => ': x\n\n'.repeat(n) + end,
  lines: (n) =>
    `data: {"choices":[\n${'data: {"index":1},\n'.repeat(n)}data: {"index":0}]}\n\n${end}`,
}
