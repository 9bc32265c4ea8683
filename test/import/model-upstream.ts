/** An upstream that answers chats as a model does. */
import type { Answer } from '../support/upstream.ts'

/** Answers each chat with `from NAME: ` and the last message. */
export const answerAs =
  (name: string): Answer =>
  ({ body }, response) => {
    const { messages = [], model } = JSON.parse(body || '{}') as {
      messages?: { content: string }[]
      model?: string
    }
    const message = {
      role: 'assistant',
      content: `from ${name}: ${messages.at(-1)?.content ?? ''}`,
    }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        id: 'c-1',
        object: 'chat.completion',
        created: 1,
        model,
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  }
