/** Serves clients that search for tools: the short list, and the search. */
import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import type { McpToolSearch } from '../../../../../ground/model/mcp-targets.ts'
import { type JsonNode, jsonValue, member, rawOf, textOf } from '../../json/node.ts'
import { codes, requestText, resultText } from '../../json-rpc.ts'
import { itemForClient, mergedResult, type Present } from '../../lists.ts'
import { type McpRequest, type McpResponse, readRequest, readResponse } from '../../message.ts'
import { toolsMethod } from '../../methods.ts'
import { matchesAny } from '../../patterns.ts'
import { ToolIndex, type ToolTexts } from '../../tool-search/index.ts'
import { searchDefinitions } from '../../tool-search/tools.ts'
import { guardList } from '../calls/guard-definitions.ts'
import { chainsFor, serveChecked } from '../calls/joined-processors.ts'
import { refusal } from '../calls/located-item.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpBackend, McpTargetEntry } from '../target/targets.ts'
import { keepToolList, knownToolList, type ToolList, toolListOf } from '../target/tool-lists.ts'
import { SessionEnded } from '../upstream/client-session.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { Send } from './fan-out.ts'
import { askWholeList, knownFilter, listFilter } from './pinned-items.ts'

/** A tool in the list of its target. */
interface ListedTool {
  readonly entry: McpTargetEntry
  readonly name: string
  readonly text: string
  readonly node: JsonNode
}

interface GatheredTools {
  readonly lists: readonly { readonly entry: McpTargetEntry; readonly list: ToolList }[]
  /** Targets that could not be asked. */
  readonly missing: readonly string[]
}

/** The tools of some lists with their index. */
interface IndexedTools {
  readonly tools: readonly ListedTool[]
  readonly index: ToolIndex
}

/** Maximum number of indexes of a backend: servers may list other tools for each client. */
const maxIndexes = 4

const indexes = new WeakMap<McpBackend, BoundedMap<string, IndexedTools>>()

export class SearchedTools {
  readonly #upstreams: Upstreams
  readonly #send: Send
  readonly #search: McpToolSearch

  constructor(upstreams: Upstreams, send: Send, search: McpToolSearch) {
    this.#upstreams = upstreams
    this.#send = send
    this.#search = search
  }

  get #exchange(): McpExchange {
    return this.#upstreams.exchange
  }

  /** Responds to `tools/list` with the tools of the search and those that stay in the list. */
  async list(request: McpRequest): Promise<ClientResponse> {
    if (member(request.params, 'cursor') !== undefined) {
      return refusal(request, codes.invalidParams, 'Invalid cursor')
    }
    const gathered = await this.#gather(request, false)
    const refused = this.#refusal(request, gathered)
    if (refused !== undefined) return refused
    const { pinned } = this.#search
    const items = gathered.lists.flatMap(({ entry, list }) => {
      const present = this.#presenter(entry, list)
      return toolsOf(entry, list).flatMap((tool) => {
        const presented = present(tool.name)
        const isListed = presented !== undefined && matchesAny(pinned, presented.name)
        return isListed ? [this.#json(tool, presented)] : []
      })
    })
    const all = { target: '', items: [...searchDefinitions(this.#search), ...items] }
    const parts = [{ ...all, cursor: undefined }]
    const { era } = this.#upstreams
    return { text: resultText(request.id, mergedResult(toolsMethod, parts, gathered.missing, era)) }
  }

  /** Responds to a call of the tool that searches. */
  async find(request: McpRequest): Promise<ClientResponse> {
    const args = member(request.params, 'arguments')
    const query = textOf(request.text, member(args, 'query'))
    if (query === undefined || query.trim() === '') {
      return this.#result(request, ['Set query to what the tool should do, in a few words.'], true)
    }
    const gathered = await this.#gather(request, true)
    const refused = this.#refusal(request, gathered)
    if (refused !== undefined) return refused
    const shown = await this.#shownTools(request, gathered)
    if (shown === 'refused') {
      return this.#result(request, ['The tools could not be listed.'], true)
    }
    const found = this.#ranked(gathered, query, this.#limitIn(request, args), shown)
    const { missing } = gathered
    const texts = [
      found.length === 0
        ? 'No tool has these words. Try others, such as the thing or the product that the task is about.'
        : `{"tools":[${found.join(',')}]}`,
      ...(missing.length > 0 ? [`Servers that could not be asked: ${missing.join(', ')}`] : []),
    ]
    return this.#result(request, texts)
  }

  #limitIn({ text }: McpRequest, args: JsonNode | undefined): number {
    const node = member(args, 'limit')
    const asked = node?.type === 'number' ? Number(jsonValue(text, node)) : this.#search.limit
    return Math.max(1, Math.min(Math.floor(asked), this.#search.limit))
  }

  /**
   * Returns the definitions that processors of `tools/list` leave in the list, by their names for clients; undefined if
   * there are no such processors.
   */
  async #shownTools(
    { id }: McpRequest,
    { lists }: GatheredTools,
  ): Promise<ReadonlyMap<string, string> | 'refused' | undefined> {
    const { era } = this.#upstreams
    const { name: method, member: list } = toolsMethod
    const chains = chainsFor(this.#exchange, era, method)
    if (chains.length === 0) return undefined
    const request = readRequest(requestText(id, method, '{}'))
    if (request === undefined) return 'refused'
    const items = lists.flatMap(({ entry, list: tools }) => {
      const present = this.#presenter(entry, tools)
      return toolsOf(entry, tools).flatMap((tool) => {
        const presented = present(tool.name)
        return presented === undefined ? [] : [this.#json(tool, presented)]
      })
    })
    const parts = [{ target: '', items, cursor: undefined }]
    const text = resultText(id, mergedResult(toolsMethod, parts, [], era))
    const answer = await serveChecked(chains, request, () => ({ text }))
    const shown = readResponse(answer.text)
    const nodes = member(shown?.result, list)?.values
    if (shown === undefined || nodes === undefined) return 'refused'
    return new Map(
      nodes.flatMap((node) => {
        const name = textOf(shown.text, member(node, 'name'))
        return name === undefined ? [] : [[name, rawOf(shown.text, node)] as const]
      }),
    )
  }

  #ranked(
    { lists }: GatheredTools,
    query: string,
    limit: number,
    shown: ReadonlyMap<string, string> | undefined,
  ): readonly string[] {
    const { index, tools } = this.#indexOf(lists)
    const presenters = new Map(
      lists.map(({ entry, list }) => [entry, this.#presenter(entry, list)] as const),
    )
    const found: string[] = []
    for (const at of index.search(query)) {
      const tool = tools[at]
      const presented = tool && presenters.get(tool.entry)?.(tool.name)
      if (tool === undefined || presented === undefined) continue
      const json = shown === undefined ? this.#json(tool, presented) : shown.get(presented.name)
      if (json === undefined) continue
      found.push(json)
      if (found.length >= limit) break
    }
    return found
  }

  #json({ entry, text, node }: ListedTool, presented: NonNullable<ReturnType<Present>>): string {
    const target = this.#exchange.only === undefined ? entry.target.name : undefined
    return itemForClient(toolsMethod, target, text, node, presented)
  }

  #presenter(entry: McpTargetEntry, { pages }: ToolList): Present {
    const keeps = knownFilter(this.#exchange, entry, toolsMethod, pages)
    return this.#exchange.view.presenter(entry, 'tools', keeps)
  }

  #result({ id }: McpRequest, texts: readonly string[], isError = false): ClientResponse {
    const modern = this.#upstreams.era === 'modern' ? { resultType: 'complete' } : {}
    const content = texts.map((text) => ({ type: 'text', text }))
    const result = { ...modern, content, ...(isError && { isError }) }
    return { text: resultText(id, JSON.stringify(result)) }
  }

  #refusal(request: McpRequest, { lists, missing }: GatheredTools): ClientResponse | undefined {
    const isFailed = lists.length === 0 || this.#exchange.backend.isFailClosed
    if (missing.length === 0 || !isFailed) return undefined
    const message = `servers could not be asked: ${missing.join(', ')}`
    return refusal(request, codes.internal, message)
  }

  // --- lists ---

  /** Gets the lists of all targets. `mayBeKnown` allows those that the client has got a short while ago. */
  async #gather(request: McpRequest, mayBeKnown: boolean): Promise<GatheredTools> {
    const { exchange } = this.#upstreams
    const client = exchange.sessionId ?? exchange.identity
    const asked = exchange.backend.targets.filter(({ target }) => {
      return this.#upstreams.can(target.name)?.includes('tools') ?? true
    })
    const missing: string[] = []
    const found = await Promise.all(
      asked.map(async (entry) => {
        const known = mayBeKnown ? knownToolList(entry, client) : undefined
        try {
          const own = known ?? keepToolList(entry, client, await this.#ask(entry, request))
          return [{ entry, list: await this.#guarded(entry, own) }]
        } catch (thrown) {
          if (thrown instanceof SessionEnded) throw thrown
          toFailure(thrown)
          missing.push(entry.target.name)
          return []
        }
      }),
    )
    return { lists: found.flat(), missing }
  }

  async #ask(entry: McpTargetEntry, request: McpRequest): Promise<readonly McpResponse[]> {
    const pages: McpResponse[] = []
    const send: Parameters<typeof askWholeList>[2] = (one) => this.#send(entry, one)
    await askWholeList(request, toolsMethod, send, (response, isPage) => {
      if (response.error !== undefined) throw new TargetFailure('the server has no list of tools')
      listFilter(this.#exchange, entry, toolsMethod, response, isPage)
      pages.push(response)
    })
    return pages
  }

  async #guarded(entry: McpTargetEntry, list: ToolList): Promise<ToolList> {
    const pages: McpResponse[] = []
    for (const page of list.pages) {
      pages.push(await guardList(this.#exchange, entry, toolsMethod, page))
    }
    return pages.every((page, at) => page === list.pages[at]) ? list : toolListOf(pages)
  }

  #indexOf(lists: GatheredTools['lists']): IndexedTools {
    const { whole } = this.#exchange.view
    const kept = indexes.get(whole) ?? new BoundedMap<string, IndexedTools>(maxIndexes)
    indexes.set(whole, kept)
    const key = lists.map(({ entry, list }) => `${entry.target.name} ${list.digest}`).join('\n')
    const known = kept.get(key)
    if (known !== undefined) return known
    const tools = lists.flatMap(({ entry, list }) => toolsOf(entry, list))
    const made = { tools, index: new ToolIndex(tools.map(textsOf)) }
    kept.set(key, made)
    return made
  }
}

function toolsOf(entry: McpTargetEntry, { pages }: ToolList): readonly ListedTool[] {
  return pages.flatMap(({ text, result }) =>
    (member(result, 'tools')?.values ?? []).flatMap((node) => {
      const name = textOf(text, member(node, 'name'))
      return name === undefined ? [] : [{ entry, name, text, node }]
    }),
  )
}

/** Returns the texts by which a tool is found: those that clients see. */
function textsOf({ entry, name, text, node }: ListedTool): ToolTexts {
  const override = entry.tools?.overrideOf(name)
  const properties = member(member(node, 'inputSchema'), 'properties')
  return {
    name: `${entry.target.name} ${entry.tools?.aliasOf(name) ?? name}`,
    title: override?.title ?? textOf(text, member(node, 'title')),
    description: override?.description ?? textOf(text, member(node, 'description')),
    parameters: (properties?.keys ?? []).map((key, at) => [
      key,
      textOf(text, member(properties?.values?.[at], 'description')) ?? '',
    ]),
  }
}
