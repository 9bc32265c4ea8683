/** Chats with a model whose texts guards mask, whole and streamed, with secrets that events cut anywhere. */
import type { Place } from '../../src/engines/messages/mask/places.ts'
import { merged, placedBody } from '../support/placed-texts.ts'
import type { Random } from '../virtual-time/random.ts'
import type { Content } from './content.ts'
import type { BilledUsage, ClientFormat, VendorFormat } from './formats/format.ts'
import { dataOfEvents, textOfEvents } from './formats/index.ts'

/** What the guards of a model's route replace, and by what. */
const secret = 'ann.lee@example.com'
const masked = '<EMAIL_ADDRESS>'

interface SentRequest {
  readonly stream_options?: { readonly include_usage?: boolean }
}

/** What webhooks make of a text in each direction. */
export interface Changes {
  request(text: string): string
  response(text: string): string
}

/** The formats of the client and of the vendor. */
interface Formats {
  readonly client: ClientFormat
  readonly vendor: VendorFormat
}

/** One chat: what the client asks, what the model says, and what the other side may see of both. */
export class ModelChat implements Content {
  readonly formats: Formats
  readonly request: Buffer
  readonly isStream: boolean
  /** Whether the client gets the usage. */
  readonly #getsUsage: boolean
  readonly #tag: string
  readonly #question: string
  readonly #speech: string
  /** The speech, as the events of a stream cut it. */
  readonly #pieces: readonly string[]
  /** How webhooks change texts that masks let pass. */
  readonly #changes: Changes
  /** The places that guards read; undefined for the usual ones. */
  readonly #scope: ReadonlySet<Place> | undefined
  /** Further texts of the request, by their places. */
  readonly #placed: ReadonlyMap<string, Place>

  constructor(
    random: Random,
    tag: string,
    formats: Formats,
    changes: Changes,
    scope?: readonly Place[],
  ) {
    this.formats = formats
    this.#changes = changes
    this.#scope = scope && new Set(scope)
    this.#tag = tag
    this.isStream = random.chance(0.6)
    const wantsUsage = random.chance(0.4)
    this.#getsUsage = !this.isStream || wantsUsage || !formats.client.asksForUsage
    this.#question = textWithSecrets(random, tag)
    this.#speech = textWithSecrets(random, tag)
    const asked = {
      tag,
      isStream: this.isStream,
      wantsUsage,
      system: random.chance(0.5) && scope === undefined ? `You are ${tag}` : undefined,
      question: this.#question,
      aside: random.chance(0.3) && scope === undefined ? `${secret} ${tag}` : undefined,
      hasParts: random.chance(0.5),
    }
    const plain = formats.client.request(asked)
    // Translations leave members out.
    const isSame = scope !== undefined && (formats.client as object) === formats.vendor
    const { body, canaries } = placedBody(
      isSame ? formats.client.places.request : {},
      (at) => `c${at}.${tag.replaceAll('~', '')}@example.org`,
    )
    this.#placed = canaries
    this.request = Buffer.from(JSON.stringify(merged(body, plain)))
    this.#pieces = cut(random, this.#speech)
  }

  /** The response of the model for which the vendor bills a usage. */
  respond(usage: BilledUsage): Buffer {
    const { vendor } = this.formats
    const said = { tag: this.#tag, pieces: this.#pieces, usage }
    return Buffer.from(this.isStream ? vendor.events(said) : JSON.stringify(vendor.whole(said)))
  }

  /** Masks a text of users or models if it is in scope. */
  #maskOf(text: string): string {
    return this.#scope?.has('Messages') === false ? text : text.replaceAll(secret, masked)
  }

  /** Whether a text has a secret that guards must have replaced. */
  #leaks(text: string): boolean {
    return this.#scope?.has('Messages') !== false && text.includes(secret)
  }

  /** Checks that the texts in scope are masked, and all others are as they were sent. */
  #problemOfPlaces(request: string): string | undefined {
    for (const [text, place] of this.#placed) {
      const encoded = Buffer.from(text).toString('base64')
      const isThere = request.includes(text) || request.includes(encoded)
      if (isThere === (this.#scope?.has(place) === true)) {
        return `gets the text ${text} of ${place} ${isThere ? 'unmasked' : 'changed'}: ${request}`
      }
    }
    return undefined
  }

  /** Whether guards let this pass of what the model may have said before it broke off. */
  #isBeginning(said: string): boolean {
    for (let end = 0; end <= this.#speech.length; end++) {
      if (this.#changes.response(this.#maskOf(this.#speech.slice(0, end))) === said) return true
    }
    return false
  }

  /** Whether guards should have replaced something in the text. */
  hasSecret(text: string): boolean {
    return this.#leaks(text)
  }

  /** Whether a body that a client gets has any part of what the model says. */
  hasSpeech(received: Buffer): boolean {
    const { client } = this.formats
    const text = received.toString()
    if (this.isStream) return textOfEvents(client, text) !== ''
    return isObject(text) && client.textOfWhole(JSON.parse(text)) !== undefined
  }

  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined {
    const text = received.toString()
    if (this.#leaks(text)) return `gets the secret of the question: ${text}`
    if (!isWhole) return undefined
    const misplaced = this.#problemOfPlaces(text)
    if (misplaced !== undefined) return misplaced
    const { vendor } = this.formats
    const request: unknown = JSON.parse(text)
    const { stream_options: options } = request as SentRequest
    const isAsked = !vendor.asksForUsage || options?.include_usage === true
    if (this.isStream && !isAsked) return 'is not asked for the usage'
    const asked = vendor.questionOf(request)
    const expected = this.#changes.request(this.#maskOf(this.#question))
    return asked === expected ? undefined : `gets the question ${asked}`
  }

  problemOfResponse(received: Buffer, isWhole: boolean): string | undefined {
    const { client } = this.formats
    const text = received.toString()
    const said = this.isStream ? textOfEvents(client, text) : ''
    if (this.#leaks(text) || this.#leaks(said)) return `gets the secret of the model: ${text}`
    const expected = this.#changes.response(this.#maskOf(this.#speech))
    // A stream that the model breaks off ends with an error.
    const isOver = isWhole && !client.errorEvents.some((event) => text.includes(event))
    if (!isOver) return this.#isBeginning(said) ? undefined : `gets a part of the speech: ${said}`
    const spoken = this.isStream ? said : client.textOfWhole(JSON.parse(text))
    if (spoken !== expected) return `gets the speech ${spoken} in ${text}`
    for (const data of this.isStream ? dataOfEvents(text) : []) {
      const repeated = client.repeatedText(data) ?? expected
      if (repeated !== expected) return `gets the repeated speech ${repeated}`
    }
    const hasUsage = text.includes('"usage":{')
    return hasUsage === this.#getsUsage ? undefined : `gets ${hasUsage ? 'a' : 'no'} usage`
  }
}

const isObject = (text: string): boolean => text.startsWith('{') && text.endsWith('}')

/** A response that guards cannot read as one of a model. */
export class UnreadableContent implements Content {
  readonly #chat: ModelChat

  constructor(chat: ModelChat) {
    this.#chat = chat
  }

  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined {
    return this.#chat.problemOfRequest(received, isWhole)
  }

  problemOfResponse(received: Buffer): string | undefined {
    return this.#chat.hasSecret(received.toString()) ? 'gets an unread secret' : undefined
  }
}

/** Bodies of a vendor's error, which quotes no text. */
export class ErrorContent implements Content {
  readonly #chat: ModelChat

  constructor(chat: ModelChat) {
    this.#chat = chat
  }

  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined {
    return this.#chat.problemOfRequest(received, isWhole)
  }

  problemOfResponse(received: Buffer): string | undefined {
    return this.#chat.hasSpeech(received) ? 'gets a speech with an error' : undefined
  }
}

function cut(random: Random, text: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(random.chance(0.5) ? 4 : 40)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

function textWithSecrets(random: Random, tag: string): string {
  const words = Array.from({ length: 1 + random.below(12) }, () =>
    random.pick([secret, tag, 'and', 'so', 'ann.lee@', '@example', 'é', '"quoted"', '\n']),
  )
  const text = words.join(' ')
  // Vendors refuse blank texts, so that gateways leave them out.
  return text.trim() === '' ? tag : text
}
