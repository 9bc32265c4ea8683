/**
 * Reads the tools of a request and the choice among them. Tools may be in a namespace, and items of the input may
 * bring more of them. Other formats have neither, so each tool gets a name that is unique among all of them.
 */
import { hash } from 'node:crypto'
import type { Chat, Tool, ToolChoice, WebSearch } from '../../chat.ts'
import {
  customTool,
  functionTool,
  isWebSearch,
  readToolChoice,
  readWebSearch,
} from '../../common/client-settings.ts'
import { booleanAt, field, isObject, listAt, stringAt } from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'

/** A tool of the client, before it has a unique name. */
interface Member {
  readonly namespace: string | undefined
  readonly tool: Tool
}

/** Types of items that bring tools. */
const bringing: readonly unknown[] = ['additional_tools', 'tool_search_output']

const keyOf = (namespace: string | undefined, name: string): string =>
  JSON.stringify([namespace ?? '', name])

/** Joins a namespace and the name of a tool by `__`, unless the namespace ends with it. */
const joined = (namespace: string, name: string): string =>
  namespace.endsWith('__') ? `${namespace}${name}` : `${namespace}__${name}`

export class RequestTools {
  readonly #members = new Map<string, Member>()
  readonly #names = new Map<string, string>()
  /** The key of the first tool of each namespace. */
  readonly #firsts = new Map<string, string>()
  #search: WebSearch | undefined
  /** The path of a web search that may only use stored results; undefined if there is none. */
  #closedSearch: string | undefined

  /** @throws LlmError 400 for tools that only the vendor of the format has. */
  constructor(body: unknown) {
    this.#readList(listAt(body, 'tools'), 'tools', undefined)
    for (const [at, item] of listAt(body, 'input').entries()) {
      if (!bringing.includes(field(item, 'type'))) continue
      this.#readList(listAt(item, 'tools'), `input[${at}].tools`, undefined)
    }
    this.#nameAll()
  }

  /** Returns the unique name of a tool; also for one that the request no longer has. */
  nameOf(namespace: string | undefined, name: string): string {
    if (namespace === undefined || namespace === '') return name
    return this.#names.get(keyOf(namespace, name)) ?? joined(namespace, name)
  }

  /** @throws LlmError 400 if other formats do not support the form of the choice. */
  settings(choice: unknown): Pick<Chat, 'tools' | 'webSearch' | 'toolChoice'> {
    const tools = [...this.#members].map(([key, { namespace, tool }]): Tool => {
      if (namespace === undefined) return tool
      const member = { namespace, name: tool.name }
      return { ...tool, name: this.#names.get(key) ?? tool.name, member }
    })
    const type = field(choice, 'type')
    if (isWebSearch(choice)) {
      return { tools, webSearch: this.#neededSearch(), toolChoice: { type: 'search' } }
    }
    if (isObject(choice) && !choiceTypes.includes(type)) {
      throw unsupportedPart('tool_choice', 'choices of this form')
    }
    const allowed = type === 'allowed_tools' ? choice : undefined
    const nameOf = (tool: unknown) => {
      const name = stringAt(tool, 'name')
      return name === undefined ? undefined : this.nameOf(stringAt(tool, 'namespace'), name)
    }
    const isAllowed = allowed === undefined || listAt(allowed, 'tools').some(isWebSearch)
    const chosen = readToolChoice(choice, tools, allowed, nameOf)
    return { webSearch: isAllowed ? this.#searchFor(chosen) : undefined, ...chosen }
  }

  /** Returns the search. If it is the only tool, the choice `required` makes it mandatory. */
  #searchFor(chosen: {
    readonly tools: readonly Tool[]
    readonly toolChoice?: ToolChoice
  }): WebSearch | undefined {
    const isOptional = chosen.toolChoice?.type !== 'required' || chosen.tools.length > 0
    return isOptional ? this.#search && { ...this.#search, isOptional } : this.#neededSearch()
  }

  #neededSearch(): WebSearch | undefined {
    if (this.#search === undefined && this.#closedSearch !== undefined) {
      throw unsupportedPart(this.#closedSearch, 'web searches without access to the web')
    }
    return this.#search
  }

  #readList(list: readonly unknown[], path: string, namespace: string | undefined): void {
    for (const [at, tool] of list.entries()) this.#read(tool, `${path}[${at}]`, namespace)
  }

  #read(tool: unknown, path: string, namespace: string | undefined): void {
    const type = stringAt(tool, 'type')
    const name = stringAt(tool, 'name')
    if (isWebSearch(tool)) {
      this.#readSearch(tool, path)
      return
    }
    switch (type) {
      case 'function':
      case 'custom':
        if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
        this.#add(keyOf(namespace, name), { namespace, tool: readTool(type, name, tool) })
        return
      case 'namespace':
        if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
        this.#readList(listAt(tool, 'tools'), `${path}.tools`, name)
        this.#describe(name, stringAt(tool, 'description') ?? '')
        return
      case 'tool_search':
        // The client runs it. The provider gets all tools, so that it need not search for them.
        if (stringAt(tool, 'execution') === 'client') return
    }
    throw unsupportedPart(path, `tools of type ${String(type)}`)
  }

  #add(key: string, member: Member): void {
    const { namespace } = member
    this.#members.set(key, member)
    if (namespace !== undefined && !this.#firsts.has(namespace)) this.#firsts.set(namespace, key)
  }

  /** Adds the description of a namespace to its first tool, because other formats have no place for it. */
  #describe(namespace: string, about: string): void {
    const key = this.#firsts.get(namespace)
    const tool = key === undefined ? undefined : this.#members.get(key)?.tool
    if (key === undefined || tool === undefined || about === '') return
    const text = `About all tools of ${namespace}: ${about}`
    const description = tool.description === undefined ? text : `${tool.description}\n\n${text}`
    this.#members.set(key, { namespace, tool: { ...tool, description } })
  }

  /** A search that may only read what the vendor has stored is left out: at another vendor it would be a live one. */
  #readSearch(tool: unknown, path: string): void {
    if (booleanAt(tool, 'external_web_access') === false) this.#closedSearch = path
    else this.#search = readWebSearch(tool, path)
  }

  #nameAll(): void {
    const all = [...this.#members]
    const taken = new Set(
      all.flatMap(([, { namespace, tool }]) => (namespace === undefined ? [tool.name] : [])),
    )
    for (const [key, { namespace, tool }] of all) {
      if (namespace === undefined) continue
      let name = joined(namespace, tool.name)
      while (taken.has(name)) name = `${name}_${hash('sha256', key).slice(0, digestLength)}`
      taken.add(name)
      this.#names.set(key, name)
    }
  }
}

const digestLength = 6

const choiceTypes: readonly unknown[] = ['allowed_tools', 'function', 'custom']

const readTool = (type: 'function' | 'custom', name: string, tool: unknown): Tool =>
  type === 'custom' ? customTool(name, tool) : functionTool(name, tool, field(tool, 'parameters'))
