/** Chats with a model whose texts guards mask, whole and streamed, with secrets that events cut anywhere. */
import type { Random } from '../virtual-time/random.ts'
import type { Content } from './content.ts'

/** What the guards of a model's route replace, and by what. */
const secret = 'ann.lee@example.com'
const masked = '<EMAIL_ADDRESS>'

/** One chat: what the client asks, what the model says, and what the other side may see of both. */
export class ModelChat implements Content {
  readonly request: Buffer
  readonly response: Buffer
  readonly isStream: boolean
  readonly #question: string
  readonly #speech: string

  constructor(random: Random, tag: string) {
    this.isStream = random.chance(0.6)
    this.#question = textWithSecrets(random, tag)
    this.#speech = textWithSecrets(random, tag)
    const messages = [
      ...(random.chance(0.5) ? [{ role: 'system', content: `You are ${tag}` }] : []),
      { role: 'user', content: random.chance(0.5) ? this.#question : parts(this.#question) },
    ]
    const asked = { model: 'm', user: tag, ...(this.isStream && { stream: true }), messages }
    this.request = Buffer.from(JSON.stringify(asked))
    this.response = this.isStream ? this.#events(random, tag) : this.#whole(tag)
  }

  #whole(tag: string): Buffer {
    const message = { role: 'assistant', content: this.#speech }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
    const object = 'chat.completion'
    return Buffer.from(JSON.stringify({ id: tag, object, created: 1, model: 'm', choices, usage }))
  }

  #events(random: Random, tag: string): Buffer {
    const pieces: string[] = []
    for (let at = 0; at < this.#speech.length; ) {
      const size = 1 + random.below(random.chance(0.5) ? 4 : 40)
      pieces.push(this.#speech.slice(at, at + size))
      at += size
    }
    const event = (delta: object, finish: string | null) => {
      const choices = [{ index: 0, delta, finish_reason: finish }]
      const chunk = { id: tag, object: 'chat.completion.chunk', created: 1, model: 'm', choices }
      return `data: ${JSON.stringify(chunk)}\n\n`
    }
    const first = event({ role: 'assistant', content: '' }, null)
    const events = pieces.map((content) => event({ content }, null))
    return Buffer.from(`${first}${events.join('')}${event({}, 'stop')}data: [DONE]\n\n`)
  }

  /** Whether guards let this pass of what the model may have said before it broke off. */
  #isBeginning(said: string): boolean {
    for (let end = 0; end <= this.#speech.length; end++) {
      if (maskOf(this.#speech.slice(0, end)) === said) return true
    }
    return false
  }

  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined {
    const text = received.toString()
    if (text.includes(secret)) return `gets the secret of the question: ${text}`
    if (!isWhole) return undefined
    const { messages } = JSON.parse(text) as { messages: readonly { content: unknown }[] }
    const content = messages.at(-1)?.content
    const asked = typeof content === 'string' ? content : textOfParts(content)
    return asked === maskOf(this.#question) ? undefined : `gets the question ${asked}`
  }

  problemOfResponse(received: Buffer, isWhole: boolean): string | undefined {
    const text = received.toString()
    const said = this.isStream ? speechIn(text) : ''
    if (text.includes(secret) || said.includes(secret))
      return `gets the secret of the model: ${text}`
    const expected = maskOf(this.#speech)
    // A stream that the model breaks off ends with an error.
    const isOver = isWhole && !text.includes('data: {"error"')
    if (!isOver) return this.#isBeginning(said) ? undefined : `gets a part of the speech: ${said}`
    const whole = this.isStream ? said : wholeSpeech(text)
    return whole === expected ? undefined : `gets the speech ${whole}`
  }
}

const maskOf = (text: string): string => text.replaceAll(secret, masked)

const parts = (text: string) => [{ type: 'text', text }]

const textOfParts = (content: unknown): string =>
  (content as readonly { text: string }[]).map(({ text }) => text).join('')

function textWithSecrets(random: Random, tag: string): string {
  const words = Array.from({ length: 1 + random.below(12) }, () =>
    random.pick([secret, tag, 'and', 'so', 'ann.lee@', '@example', 'é', '"quoted"', '\n']),
  )
  return words.join(' ')
}

/** The text of the events that have arrived as a whole. */
function speechIn(text: string): string {
  const events = text.split('\n\n').slice(0, -1)
  return events
    .map((event) => event.replace(/^data: /, ''))
    .filter((data) => data.startsWith('{'))
    .map((data) => {
      const { choices = [] } = JSON.parse(data) as {
        choices?: readonly { delta?: { content?: string } }[]
      }
      return choices.map(({ delta }) => delta?.content ?? '').join('')
    })
    .join('')
}

function wholeSpeech(text: string): string {
  const { choices } = JSON.parse(text) as { choices: readonly { message: { content: string } }[] }
  return choices[0]?.message.content ?? ''
}
