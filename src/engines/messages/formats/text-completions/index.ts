/** Text completions, the older format of vendor A, which many servers still have. */
import type {
  Chat,
  ModelResponse,
  ResponseContext,
  ResponseEvent,
  ResponseEventWriter,
  StreamEvent,
} from '../../chat.ts'
import type { ChatFormat } from '../../format.ts'
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  mapField,
  objectAt,
  parseJson,
  stringAt,
  textsAt,
} from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { asksForUsage, complete, lacksUsage } from '../completions/completion.ts'
import { completions } from '../completions/index.ts'
import { readCompletionsRequest } from '../completions/read-request.ts'
import { writeCompletion } from '../completions/response.ts'
import { CompletionsWriter } from '../completions/stream.ts'
import { textCompletionsShape } from './shape.ts'

/** Members that other formats do not have, and the values that mean nothing. */
const onlyHere: Readonly<Record<string, readonly unknown[]>> = {
  suffix: [undefined, null, ''],
  echo: [undefined, null, false],
  logprobs: [undefined, null],
  best_of: [undefined, null, 1],
}

/** @throws LlmError 400 for prompts that are no text, and for members that only this format has */
function readRequest(body: JsonObject): Chat {
  for (const [name, meaningless] of Object.entries(onlyHere)) {
    if (!meaningless.includes(field(body, name))) throw unsupportedPart(name, 'this field')
  }
  const { prompt, ...settings } = body
  const [only = '', ...more] = Array.isArray(prompt) ? prompt : [prompt]
  if (more.length > 0) throw unsupportedPart('prompt', 'several prompts')
  if (typeof only !== 'string') throw unsupportedPart('prompt', 'tokens instead of texts')
  return readCompletionsRequest({ ...settings, messages: [{ role: 'user', content: only }] })
}

/** Returns a choice with a text instead of a message or of a delta. */
function withText(choice: unknown, text: string): JsonObject {
  const { message: _message, delta: _delta, ...rest } = isObject(choice) ? choice : {}
  return { text, logprobs: null, ...rest }
}

function writeResponse(response: ModelResponse, context: ResponseContext): JsonObject {
  const written = mapField(writeCompletion(response, context), 'choices', (choice) => {
    const message = objectAt(choice, 'message')
    return withText(choice, stringAt(message, 'content') ?? stringAt(message, 'refusal') ?? '')
  })
  return { ...written, object: 'text_completion' }
}

/** Writes chunks of chat completions as chunks of text completions; thoughts and calls have no place there. */
class TextCompletionsWriter implements ResponseEventWriter {
  readonly #writer: CompletionsWriter

  constructor(context: ResponseContext, wantsUsage: boolean) {
    this.#writer = new CompletionsWriter(context, wantsUsage)
  }

  write(event: ResponseEvent): readonly StreamEvent[] {
    return this.#writer.write(event).flatMap(textChunk)
  }

  finish(isClean: boolean): readonly StreamEvent[] {
    return this.#writer.finish(isClean).flatMap(textChunk)
  }
}

function textChunk(event: StreamEvent): StreamEvent[] {
  const parsed = parseJson(event.data)
  if (!isObject(parsed) || parsed.choices === undefined) return [event]
  const choices = listAt(parsed, 'choices').map((choice) => {
    const delta = objectAt(choice, 'delta')
    return withText(choice, stringAt(delta, 'content') ?? stringAt(delta, 'refusal') ?? '')
  })
  const isBare = choices.every(({ text, finish_reason }) => text === '' && finish_reason == null)
  if (choices.length > 0 && isBare) return []
  return [{ ...event, data: JSON.stringify({ ...parsed, object: 'text_completion', choices }) }]
}

const texts = (prompt: unknown): boolean =>
  (Array.isArray(prompt) ? prompt : [prompt]).every((one) => typeof one === 'string')

/** Events and responses are like those of chat completions, with `text` in place of a message. */
export const textCompletions: ChatFormat<'TextCompletions'> = {
  ...completions,
  name: 'TextCompletions',
  endings: ['/completions'],
  textMembers: ['prompt'],
  limitMembers: ['max_tokens'],
  shape: textCompletionsShape,
  history: { settle: (body) => body, rules: {} },
  problemOf: ({ prompt }) => (prompt === undefined ? 'prompt must be text' : undefined),
  // A list of numbers is one prompt, as tokens.
  promptsIn: ({ prompt }) =>
    Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1,
  unguardable: ({ prompt }) => (texts(prompt) ? undefined : 'prompt: only texts can be guarded'),
  withMessages: (settings, messages) => ({
    ...settings,
    prompt: messages.map(({ content }) => content).join('\n'),
  }),
  completion: {
    ...completions.completion,
    isComplete: (fields) => !lacksUsage(fields),
    complete: (body, facts) => complete(body, { ...facts, limitField: 'max_tokens' }),
    hidesUsage: (body) => !asksForUsage(body),
    withoutUsage: (...event) => completions.completion?.withoutUsage(...event) ?? [],
  },
  readRequest,
  writeResponse,
  writer: (context) => new TextCompletionsWriter(context, asksForUsage(context.request)),
  enrich() {
    throw new LlmError(400, 'messages cannot be added to text completions')
  },
  callsIn: () => [],
  events: {
    ...completions.events,
    contentOf: (event) => listAt(event, 'choices').flatMap((choice) => textsAt(choice, ['text'])),
  },
}
