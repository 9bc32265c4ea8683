/**
 * Everything that derivations can read, and which nodes have read it. A derivation usually reads the same
 * as the last time, in the same order. Each read is thus compared with the one that is expected next, and
 * nothing is looked up, or stored again, while they agree.
 */
import { exactList } from '../../ground/base/exact-list.ts'
import type { ObjectKey } from '../../ground/model/names.ts'

export type SourceType = 'object' | 'index' | 'value' | 'relation' | 'fact'

interface GraphSource<Node> {
  readonly type: SourceType
  /** The four parts of its name; unused ones are empty. Fields take less memory than a list. */
  readonly a: string
  readonly b: string
  readonly c: string
  readonly d: string
  /** The name without the type. */
  readonly name: string
  /** Most sources have one reader, which needs no set. */
  reader: Node | undefined
  others: Set<Node> | undefined
  /** The node that derives the value, if the source is a value and has been read since the node was created. */
  owner: Node | undefined
}

/** What has read sources; `Sources` writes `reads`. */
export interface SourceReader {
  /** In the order of reading. A source is in the list as often as it was read. */
  reads: readonly GraphSource<unknown>[]
}

/** The name of the value that a stage derives for an object. */
export const valueName = (stage: string, key: ObjectKey): string => [stage, key].join(':')

/** Names are flat strings, see `objectKey`. */
const joinName: Readonly<
  Record<SourceType, (a: string, b: string, c: string, d: string) => string>
> = {
  object: (kind, namespace, name) => [kind, namespace, name].join('/'),
  value: (stage, kind, namespace, name) => valueName(stage, [kind, namespace, name].join('/')),
  index: (index, key) => [index, key].join('\0'),
  relation: (relation, key) => [relation, key].join('\0'),
  fact: (name) => name,
}

export class Sources<Node extends SourceReader> {
  readonly #byName: Readonly<Record<SourceType, Map<string, GraphSource<Node>>>> = {
    object: new Map(),
    index: new Map(),
    value: new Map(),
    relation: new Map(),
    fact: new Map(),
  }
  /** What the current node read the last time. */
  #expected: readonly GraphSource<Node>[] = []
  #count = 0
  /** Set once the node has read something else than expected. */
  #reads: GraphSource<Node>[] | undefined

  /** Begins to record what a node reads. Only one node reads at a time. */
  begin({ reads }: Node): void {
    this.#expected = reads as readonly GraphSource<Node>[]
    this.#count = 0
    this.#reads = undefined
  }

  /** Records that the current node reads a source. */
  read(type: SourceType, a: string, b = '', c = '', d = ''): GraphSource<Node> {
    const expected = this.#expected[this.#count]
    const source =
      expected !== undefined && isNamed(expected, type, a, b, c, d)
        ? expected
        : this.#find(type, a, b, c, d)
    if (source !== expected) this.#reads ??= this.#expected.slice(0, this.#count)
    this.#reads?.push(source)
    this.#count++
    return source
  }

  /** Number of reads of the current node so far. */
  get count(): number {
    return this.#count
  }

  /** Records that the current node reads again what it read the last time from one position up to another. */
  repeat(from: number, to: number): void {
    if (this.#reads !== undefined || this.#count !== from) {
      this.#reads ??= this.#expected.slice(0, this.#count)
      for (let at = from; at < to; at++) this.#reads.push(this.#expected[at] as GraphSource<Node>)
    }
    this.#count += to - from
  }

  /** Ends recording, and makes the node a reader of what it has read. */
  end(node: Node): void {
    if (this.#reads === undefined && this.#count === this.#expected.length) return
    this.#replaceReads(node, exactList(this.#reads ?? this.#expected.slice(0, this.#count)))
  }

  /** Removes a node from the readers. */
  forget(node: Node): void {
    this.#replaceReads(node, [])
  }

  /** Removes a node from the value that it has. */
  disown(value: string): void {
    const source = this.#byName.value.get(value)
    if (source !== undefined) source.owner = undefined
  }

  /** The nodes that have read a source. */
  readersOf(type: SourceType, name: string): Iterable<Node> {
    const source = this.#byName[type].get(name)
    if (source?.reader === undefined) return []
    const { reader, others } = source
    return others === undefined ? [reader] : [reader, ...others]
  }

  #find(type: SourceType, a: string, b: string, c: string, d: string): GraphSource<Node> {
    const name = joinName[type](a, b, c, d)
    const known = this.#byName[type].get(name)
    if (known !== undefined) return known
    const reader = undefined
    const source = { type, a, b, c, d, name, reader, others: undefined, owner: undefined }
    this.#byName[type].set(name, source)
    return source
  }

  #replaceReads(node: Node, reads: readonly GraphSource<Node>[]): void {
    const before = node.reads as readonly GraphSource<Node>[]
    node.reads = reads
    for (const source of reads) addReader(source, node)
    if (before.length === 0) return
    const kept = new Set(reads)
    for (const source of before) {
      if (kept.has(source)) continue
      removeReader(source, node)
      // Users can create any number of names, so those that nothing reads are removed.
      if (source.reader === undefined) this.#byName[source.type].delete(source.name)
    }
  }
}

function addReader<Node>(source: GraphSource<Node>, node: Node): void {
  source.reader ??= node
  if (source.reader === node) return
  source.others ??= new Set()
  source.others.add(node)
}

function removeReader<Node>(source: GraphSource<Node>, node: Node): void {
  if (source.reader !== node) {
    source.others?.delete(node)
    return
  }
  const [next] = source.others ?? []
  source.reader = next
  if (next !== undefined) source.others?.delete(next)
}

function isNamed(
  source: GraphSource<unknown>,
  type: SourceType,
  a: string,
  b: string,
  c: string,
  d: string,
): boolean {
  return (
    source.type === type && source.a === a && source.b === b && source.c === c && source.d === d
  )
}

/** The names of all sources that a node has read, with their types; sorted. */
export function namesOfReads({ reads }: SourceReader): readonly string[] {
  return [...new Set(reads.map(({ type, name }) => `${type}:${name}`))].sort()
}
