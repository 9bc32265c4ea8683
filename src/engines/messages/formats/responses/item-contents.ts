/** Takes from the last event of an item what the events before it have not brought, because some servers send no pieces. */
import type { ResponseEvent } from '../../chat.ts'
import { placedCitations } from '../../common/citations.ts'
import { listAt, stringAt } from '../../json/json.ts'
import { refusalIn, signatureOfItem, textBlocks } from './read-response.ts'

type ContentKind = 'input' | 'text' | 'refusal' | 'thinking'

/** What the events of a stream have brought of its items, which are known by their positions and by their ids. */
export class ItemContents {
  readonly #known = new Set<string>()
  #last: readonly [kind: ContentKind, index: number] | undefined

  /** Whether nothing has arrived of any item. */
  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  /** Notes that content has arrived. Servers differ in which of position and id stays the same for an item. */
  note(kind: ContentKind, index: number, id: string | undefined): void {
    if (this.#last?.[0] === kind && this.#last[1] === index) return
    this.#last = [kind, index]
    this.#known.add(`${kind} ${index}`)
    if (id) this.#known.add(`${kind} ${id}`)
  }

  /** Returns what is missing of an item, and its end. */
  finish(index: number, item: unknown): readonly ResponseEvent[] {
    return [...this.#missing(index, item), { type: 'block-stop', index }]
  }

  /** Returns the start of a call; nothing for other items, and for a call that has started. */
  startCall(index: number, item: unknown): readonly ResponseEvent[] {
    const name = stringAt(item, 'name')
    if (stringAt(item, 'type') !== 'function_call' || name === undefined) return []
    const id = stringAt(item, 'call_id') ?? ''
    const key = `call ${id || index}`
    if (this.#known.has(key)) return []
    this.#last = undefined
    this.#known.add(key)
    return [{ type: 'tool-start', index, id, name }]
  }

  /** Returns the arguments of a call, unless some have arrived. */
  input(index: number, id: string | undefined, json: string | undefined): readonly ResponseEvent[] {
    if (!json || !this.#isNew('input', index, id)) return []
    return [{ type: 'tool-input', index, json }]
  }

  #missing(index: number, item: unknown): readonly ResponseEvent[] {
    switch (stringAt(item, 'type')) {
      case 'function_call':
        return [
          ...this.startCall(index, item),
          ...this.input(index, stringAt(item, 'id'), stringAt(item, 'arguments')),
        ]
      case 'reasoning':
        return this.#thinking(index, item)
      case 'message':
        return this.#message(index, item)
      default:
        return []
    }
  }

  #thinking(index: number, item: unknown): readonly ResponseEvent[] {
    const texts = listAt(item, 'summary').flatMap((part) => stringAt(part, 'text') || [])
    const isMissing = texts.length > 0 && this.#isNew('thinking', index, stringAt(item, 'id'))
    const text = isMissing ? texts.join('\n\n') : ''
    const signature = signatureOfItem(item)
    return text === '' && signature === undefined
      ? []
      : [{ type: 'thinking', index, text, ...(signature !== undefined && { signature }) }]
  }

  #message(index: number, item: unknown): readonly ResponseEvent[] {
    const id = stringAt(item, 'id')
    const blocks = textBlocks(item)
    const text = blocks.map((block) => block.text).join('')
    const refusal = refusalIn([item]) ?? ''
    const events: ResponseEvent[] = []
    if (text !== '' && this.#isNew('text', index, id)) {
      events.push({ type: 'text', index, text })
      for (const citation of placedCitations(blocks)) {
        events.push({ type: 'citation', index, citation })
      }
    }
    if (refusal !== '' && this.#isNew('refusal', index, id)) {
      events.push({ type: 'refusal', text: refusal })
    }
    return events
  }

  #isNew(kind: ContentKind, index: number, id: string | undefined): boolean {
    const isKnown = this.#known.has(`${kind} ${index}`) || this.#known.has(`${kind} ${id}`)
    if (!isKnown) this.note(kind, index, id)
    return !isKnown
  }
}
