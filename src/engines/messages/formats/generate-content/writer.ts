/** Writes streamed responses in vendor D's native format, whose events are pieces of a response. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import {
  laterUsage,
  type RedactedThinkingBlock,
  type ResponseContext,
  type ResponseEvent,
  type ResponseEventWriter,
  type StopReason,
  type StreamEvent,
  type ThinkingBlock,
  type Usage,
} from '../../chat.ts'
import { readArguments } from '../../common/arguments.ts'
import { type PlacedCitation, StreamedCitations } from '../../common/citations.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import {
  writeCall,
  writeFinishReason,
  writeGenerateContentUsage,
  writeGoogleError,
  writeGrounding,
  writeThought,
} from './write-response.ts'

interface OpenCall {
  readonly id: string
  readonly name: string
  json: string
}

/** Writes calls when they are complete. The reason of the end and the usage come in the last event. */
export class GenerateContentWriter implements ResponseEventWriter {
  readonly #context: ResponseContext
  #head: JsonObject | undefined
  /** Thoughts since the last call. */
  #thoughts: (ThinkingBlock | RedactedThinkingBlock)[] = []
  readonly #calls = new Map<number, OpenCall>()
  /** Number of calls that were written. */
  #written = 0
  readonly #citations = new StreamedCitations()
  readonly #placed: PlacedCitation[] = []
  #text = ''
  #stop: StopReason = 'end'
  #usage: Usage | undefined
  #isOver = false

  constructor(context: ResponseContext) {
    this.#context = context
  }

  write(event: ResponseEvent): readonly StreamEvent[] {
    switch (event.type) {
      case 'start':
        this.#head = { modelVersion: event.model, responseId: event.id }
        this.#usage = event.usage
        return []
      case 'text':
        this.#text += event.text
        this.#citations.addText(event.index, event.text)
        return [this.#piece([{ text: event.text }])]
      case 'refusal':
        return [this.#piece([{ text: event.text }])]
      case 'citation':
        appendAll(this.#placed, this.#citations.add(event.index, event.citation))
        return []
      case 'thinking':
        return this.#think(event.text, event.signature)
      case 'redacted-thinking': {
        const thought = { type: 'redacted-thinking', data: event.data } as const
        this.#thoughts.push(thought)
        return [this.#piece([writeThought(thought)])]
      }
      case 'made-image':
        return [this.#piece([{ inlineData: { mimeType: event.mediaType, data: event.data } }])]
      case 'tool-start':
        this.#calls.set(event.index, { id: event.id, name: event.name, json: '' })
        return []
      case 'tool-input': {
        const call = this.#calls.get(event.index)
        if (call !== undefined) call.json += event.json
        return []
      }
      case 'block-stop':
        appendAll(this.#placed, this.#citations.endBlock(event.index))
        return this.#endCall(event.index)
      case 'stop':
        this.#stop = event.reason
        return []
      case 'usage':
        this.#usage = laterUsage(this.#usage, event.usage)
        return []
      case 'error':
        this.#isOver = true
        return [{ event: undefined, data: JSON.stringify(writeGoogleError(event.error)) }]
      case 'end':
        return []
    }
  }

  finish(isClean: boolean): readonly StreamEvent[] {
    if (!isClean || this.#isOver) return []
    this.#isOver = true
    const calls = [...this.#calls.keys()].flatMap((index) => this.#endCall(index))
    appendAll(this.#placed, this.#citations.end())
    const sources = this.#placed.length > 0 && {
      groundingMetadata: writeGrounding(this.#text, this.#placed),
    }
    const candidate = {
      content: { role: 'model', parts: [] },
      finishReason: writeFinishReason(this.#stop),
      index: 0,
      ...sources,
    }
    const usageMetadata = this.#usage && writeGenerateContentUsage(this.#usage)
    return [...calls, this.#event(compact({ candidates: [candidate], usageMetadata }))]
  }

  /** The text of a thought comes in pieces, and its signature last. */
  #think(text: string, signature: string | undefined): StreamEvent[] {
    const last = this.#thoughts.at(-1)
    const isOpen = last?.type === 'thinking' && last.signature === undefined
    const whole = { type: 'thinking', text: (isOpen ? last.text : '') + text, signature } as const
    if (isOpen) this.#thoughts.pop()
    this.#thoughts.push(whole)
    const parts: JsonObject[] = text === '' ? [] : [{ text, thought: true }]
    if (signature !== undefined) parts.push({ ...writeThought(whole), text: '' })
    return parts.length === 0 ? [] : [this.#piece(parts)]
  }

  /** A call that the limit of tokens has cut off is left out. */
  #endCall(index: number): StreamEvent[] {
    const call = this.#calls.get(index)
    if (call === undefined) return []
    this.#calls.delete(index)
    const input = readArguments(call.json)
    if (typeof input === 'string' && this.#stop === 'length') return []
    const part = writeCall({ ...call, input }, this.#thoughts, this.#written++ === 0)
    this.#thoughts = []
    return [this.#piece([part])]
  }

  #piece(parts: readonly JsonObject[]): StreamEvent {
    return this.#event({ candidates: [{ content: { role: 'model', parts }, index: 0 }] })
  }

  #event(fields: JsonObject): StreamEvent {
    this.#head ??= { responseId: this.#context.newId() }
    return { event: undefined, data: JSON.stringify({ ...fields, ...this.#head }) }
  }
}
