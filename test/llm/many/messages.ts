/** Requests in the messages format with many items of one kind. */
import { alternating, type RequestBuilders, times, user } from './items.ts'

const tu = (i: number) => ({ type: 'tool_use', id: `c!${i}`, name: 'f', input: {} })
const tr = (i: number | string, content: unknown = 'r') => ({
  type: 'tool_result',
  tool_use_id: `c!${i}`,
  content,
})
const doc = (_i: number) => ({
  type: 'document',
  title: 'same',
  source: { type: 'text', media_type: 'text/plain', data: 'x' },
})
const pdf = (i: number) => ({
  type: 'document',
  title: `t${i}`,
  source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
})
export const manyOfMessages: RequestBuilders = {
  blocks: (n) => ({
    messages: [{ role: 'user', content: times(n, () => ({ type: 'text', text: 'x' })) }],
  }),
  alternating,
  calls: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: times(n, tu) },
      { role: 'user', content: times(n, (i) => tr(i)) },
    ],
  }),
  callsReversed: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: times(n, tu) },
      { role: 'user', content: times(n, (i) => tr(n - 1 - i)) },
    ],
  }),
  callsSame: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: times(n, () => tu(0)) },
      { role: 'user', content: times(n, (_i) => tr(0)) },
    ],
  }),
  resultsApart: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: times(n, tu) },
      ...times(n, (i) => ({ role: 'user', content: [tr(i)] })),
    ],
  }),
  resultsWithTexts: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: times(n, tu) },
      { role: 'user', content: times(n, (i) => [tr(i), { type: 'text', text: 'x' }]).flat() },
    ],
  }),
  docs: (n) => ({ messages: [{ role: 'user', content: times(n, doc) }] }),
  pdfs: (n) => ({ messages: [{ role: 'user', content: times(n, pdf) }] }),
  docsWithResult: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: [tu(0)] },
      {
        role: 'user',
        content: [tr(0), ...times(n, doc), ...times(n, () => ({ type: 'text', text: 'x' }))],
      },
    ],
  }),
  docsInResult: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: [tu(0)] },
      { role: 'user', content: [tr(0, times(n, pdf))] },
    ],
  }),
  imagesInResult: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: [tu(0)] },
      {
        role: 'user',
        content: [
          tr(
            0,
            times(n, () => ({
              type: 'image',
              source: { type: 'base64', media_type: 'image/png', data: 'aGk=' },
            })),
          ),
        ],
      },
    ],
  }),
  searchResults: (n) => ({
    messages: [
      {
        role: 'user',
        content: times(n, (i) => ({
          type: 'search_result',
          title: 't',
          source: `http://x/${i}`,
          content: [{ type: 'text', text: 'x' }],
        })),
      },
    ],
  }),
  cached: (n) => ({
    messages: times(n, (i) => ({
      role: i % 2 ? 'assistant' : 'user',
      content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }],
    })),
  }),
  cachedTools: (n) => ({
    messages: [user],
    tools: times(n, (i) => ({
      name: `f${i}`,
      input_schema: { type: 'object' },
      cache_control: { type: 'ephemeral' },
    })),
  }),
  tools: (n) => ({
    messages: [user],
    tools: times(n, (i) => ({ name: `f${i}`, input_schema: { type: 'object' } })),
    tool_choice: { type: 'tool', name: 'f5' },
  }),
  system: (n) => ({ messages: [user], system: times(n, () => ({ type: 'text', text: 'x' })) }),
  systemCached: (n) => ({
    messages: [user],
    system: times(n, () => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } })),
  }),
  systemLater: (n) => ({
    messages: times(n, (i) => ({ role: i % 2 ? 'system' : 'user', content: 'x' })),
  }),
  thinking: (n) => ({
    messages: times(n, (i) =>
      i % 2
        ? {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'x', signature: 's' },
              { type: 'tool_use', id: `c${i}`, name: 'f', input: {} },
            ],
          }
        : {
            role: 'user',
            content: i ? [{ type: 'tool_result', tool_use_id: `c${i - 1}`, content: 'r' }] : 'x',
          },
    ),
  }),
  thinkingOne: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        content: times(n, () => ({ type: 'thinking', thinking: 'x', signature: 's' })),
      },
    ],
  }),
  redacted: (n) => ({
    messages: [
      user,
      { role: 'assistant', content: times(n, () => ({ type: 'redacted_thinking', data: 'x' })) },
      user,
    ],
  }),
  citations: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        content: [
          {
            type: 'text',
            text: 'x',
            citations: times(n, (i) => ({
              type: 'web_search_result_location',
              url: `http://x/${i}`,
              title: 't',
              cited_text: 'x',
              encrypted_index: 'e',
            })),
          },
        ],
      },
      user,
    ],
  }),
  serverTools: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        content: times(n, (i) => [
          { type: 'server_tool_use', id: `s${i}`, name: 'web_search', input: { query: 'x' } },
          {
            type: 'web_search_tool_result',
            tool_use_id: `s${i}`,
            content: [
              { type: 'web_search_result', url: 'http://x', title: 't', encrypted_content: 'e' },
            ],
          },
        ]).flat(),
      },
      user,
    ],
  }),
  stop: (n) => ({ messages: [user], stop_sequences: times(n, (i) => `s${i}`) }),
}
