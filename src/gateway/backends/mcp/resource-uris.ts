/** Rewrites the URIs of a target's resources, wherever a message has one, for clients that see several targets. */
import { type Edit, type JsonNode, jsonValue, member, textOf } from './json/node.ts'
import { clientUri } from './naming.ts'

/**
 * Members of `_meta` with the URI of the interface of a tool (MCP Apps 2026-01-26), besides `resourceUri` in
 * `ui`: an older form of it, and that of the Apps SDK.
 */
const appKeys = ['ui/resourceUri', 'openai/outputTemplate']

/** Codes of errors about a resource that does not exist, with its URI in `data`; -32002 up to 2025-11-25. */
const resourceErrors: readonly unknown[] = [-32002, -32602]

/** Collects the edits of one message. */
export class UriEdits {
  readonly #edits: Edit[] = []
  readonly #target: string
  readonly #text: string

  constructor(target: string, text: string) {
    this.#target = target
    this.#text = text
  }

  /** The edits in order. */
  get all(): readonly Edit[] {
    return this.#edits.sort((a, b) => a.start - b.start)
  }

  add(edit: Edit): void {
    this.#edits.push(edit)
  }

  result(result: JsonNode): void {
    this.meta(result)
    this.#blocks(member(result, 'content'))
    for (const content of member(result, 'contents')?.values ?? []) this.resource(content)
    this.#messages(result)
    for (const asked of member(result, 'inputRequests')?.values ?? []) {
      this.request(member(asked, 'params'))
    }
  }

  /** Rewrites the params of a request of a server, such as `sampling/createMessage`. */
  request(params: JsonNode | undefined): void {
    this.meta(params)
    this.#messages(params)
  }

  error(error: JsonNode): void {
    const code = member(error, 'code')
    if (code === undefined || !resourceErrors.includes(jsonValue(this.#text, code))) return
    this.#uri(member(error, 'data'), 'uri')
  }

  resource(node: JsonNode | undefined): void {
    this.#uri(node, 'uri')
    this.meta(node)
  }

  /** Rewrites the URIs in the `_meta` of a node. */
  meta(node: JsonNode | undefined): void {
    const meta = member(node, '_meta')
    if (meta === undefined) return
    this.#uri(member(meta, 'ui'), 'resourceUri')
    for (const key of appKeys) this.#uri(meta, key)
  }

  #messages(node: JsonNode | undefined): void {
    for (const message of member(node, 'messages')?.values ?? []) {
      this.meta(message)
      this.#blocks(member(message, 'content'))
    }
  }

  #blocks(content: JsonNode | undefined): void {
    if (content === undefined) return
    const blocks = content.type === 'array' ? (content.values ?? []) : [content]
    for (const block of blocks) this.#block(block)
  }

  #block(block: JsonNode): void {
    switch (textOf(this.#text, member(block, 'type'))) {
      case 'resource_link':
        this.resource(block)
        return
      case 'resource':
        this.resource(member(block, 'resource'))
        break
      case 'tool_result':
        this.#blocks(member(block, 'content'))
    }
    this.meta(block)
  }

  #uri(node: JsonNode | undefined, key: string): void {
    const found = member(node, key)
    const uri = textOf(this.#text, found)
    if (found === undefined || uri === undefined) return
    const text = JSON.stringify(clientUri(this.#target, uri))
    this.#edits.push({ start: found.start, end: found.end, text })
  }
}
