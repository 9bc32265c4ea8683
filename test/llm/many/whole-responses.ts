/** Whole responses in the formats of providers, with many items of one kind. */
import { type RequestBuilders, times } from './items.ts'

const choice = (message: object, index = 0) => ({
  index,
  message: { role: 'assistant', content: 'x', ...message },
  finish_reason: 'stop',
})
const completions: RequestBuilders = {
  choices: (n) => ({ choices: times(n, (at) => choice({}, at)) }),
  calls: (n) => ({
    choices: [
      choice({
        tool_calls: times(n, (at) => ({
          id: `c${at}`,
          type: 'function',
          function: { name: 'f', arguments: '{}' },
        })),
      }),
    ],
  }),
  annotations: (n) => ({
    choices: [
      choice({
        content: 'x'.repeat(n),
        annotations: times(n, (at) => ({
          type: 'url_citation',
          url_citation: { url: `http://x/${at}`, title: 't' },
        })),
      }),
    ],
  }),
}

const messages: RequestBuilders = {
  texts: (n) => ({ content: times(n, () => ({ type: 'text', text: 'x' })) }),
  calls: (n) => ({
    content: times(n, (at) => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} })),
  }),
  thinking: (n) => ({
    content: times(n, () => ({ type: 'thinking', thinking: 'x', signature: 's' })),
  }),
  citations: (n) => ({
    content: times(n, (at) => ({
      type: 'text',
      text: 'x',
      citations: [
        { type: 'web_search_result_location', url: `http://x/${at}`, title: 't', cited_text: 'x' },
      ],
    })),
  }),
  compactions: (n) => ({
    content: [{ type: 'text', text: 'x' }],
    usage: {
      input_tokens: 1,
      output_tokens: 1,
      iterations: times(n, () => ({ type: 'compaction', input_tokens: 1, output_tokens: 1 })),
    },
  }),
}

const candidate = (parts: readonly object[], more: object = {}, index = 0) => ({
  index,
  content: { parts },
  finishReason: 'STOP',
  ...more,
})
const generateContent: RequestBuilders = {
  candidates: (n) => ({ candidates: times(n, (at) => candidate([{ text: 'x' }], {}, at)) }),
  parts: (n) => ({
    candidates: [candidate(times(n, (at) => ({ text: 'x', thought: at % 2 > 0 })))],
  }),
  calls: (n) => ({ candidates: [candidate(times(n, () => ({ functionCall: { name: 'f' } })))] }),
  sources: (n) => ({
    candidates: [
      candidate([{ text: 'é'.repeat(n) }], {
        groundingMetadata: {
          groundingChunks: times(n, (at) => ({ web: { uri: `http://x/${at}`, title: 't' } })),
          groundingSupports: times(n, (at) => ({
            segment: { startIndex: 2 * at, endIndex: 2 * at + 2 },
            groundingChunkIndices: [at],
          })),
        },
      }),
    ],
  }),
}

const message = (content: readonly object[]) => ({
  output: { message: { role: 'assistant', content } },
  stopReason: 'end_turn',
})
const converse: RequestBuilders = {
  texts: (n) => message(times(n, () => ({ text: 'x' }))),
  calls: (n) =>
    message(times(n, (at) => ({ toolUse: { toolUseId: `c${at}`, name: 'f', input: {} } }))),
}

const responses: RequestBuilders = {
  messages: (n) => ({
    output: times(n, () => ({ type: 'message', content: [{ type: 'output_text', text: 'x' }] })),
  }),
  calls: (n) => ({
    output: times(n, (at) => ({
      type: 'function_call',
      call_id: `c${at}`,
      name: 'f',
      arguments: '{}',
    })),
  }),
  reasoning: (n) => ({
    output: times(n, () => ({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'x' }] })),
  }),
}

export const manyInResponses = {
  completions,
  messages,
  responses,
  converse,
  'generate-content': generateContent,
} as const
