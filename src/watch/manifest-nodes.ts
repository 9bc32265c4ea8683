/** What of YAML has no place in a manifest: found in the parsed nodes, before values are made of them. */
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  visit,
} from 'yaml'
import { type FieldProblem, formatPath, type PathStep } from '../api/validate.ts'

interface NodeProblem {
  readonly offset: number
  readonly message: string
}

/** Values that aliases in merges may stand for, all in all. */
const mergedLimit = 100_000

/** Aliases in a document: each is looked up among all the others. */
const aliasLimit = 10_000

/** What the aliases of a document stand for. */
type AliasTargets = ReadonlyMap<unknown, Node>

/** The first thing that gives no object: an alias to nothing, a key that is no text, endless merges. */
export function nodeProblem(document: Document.Parsed): NodeProblem | undefined {
  let found: NodeProblem | undefined
  let hasMerge = false
  const anchors = new Map<string, Node>()
  const targets = new Map<unknown, Node>()
  const stopAt = (node: Node, message: string) => {
    found = { offset: node.range?.[0] ?? 0, message }
    return visit.BREAK
  }
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) {
        const target = anchors.get(node.source)
        if (target === undefined) {
          return stopAt(node, 'not YAML: an alias names an anchor that is not set before it')
        }
        targets.set(node, target)
        return targets.size > aliasLimit ? stopAt(node, tooManyAliases) : undefined
      }
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
      return isMap(node) ? repeatedKey(node, stopAt) : undefined
    },
    Pair(_, { key }) {
      if (isScalar(key)) {
        if (typeof key.value === 'symbol') hasMerge = true
        return undefined
      }
      if (!isNode(key)) return undefined
      const hint = 'is this a template that was not filled in?'
      return stopAt(key, `a name of a field must be a text, not a list or map; ${hint}`)
    },
  })
  if (found !== undefined || !hasMerge) return found
  const weigh = weigher(targets)
  if (weigh(document.contents) <= mergedLimit) return undefined
  return { offset: startOf(document), message: tooManyAliases }
}

const tooManyAliases = 'has too many aliases'

/** The parser compares every key with every other one; this takes one look at each. */
function repeatedKey(
  map: { readonly items: readonly { readonly key: unknown }[] },
  stopAt: (node: Node, message: string) => symbol,
): symbol | undefined {
  const seen = new Set<unknown>()
  for (const { key } of map.items) {
    // A merge key may stand there more than once.
    if (!isScalar(key) || typeof key.value === 'symbol') continue
    if (seen.has(key.value)) return stopAt(key, 'not YAML: Map keys must be unique')
    seen.add(key.value)
  }
  return undefined
}

export function startOf({ contents, range }: Document.Parsed): number {
  return contents?.range[0] ?? range[0]
}

/** YAML's own tags for what JSON has too; those of applications leave the text as it is. */
const ownTags = 'tag:yaml.org,2002:'
const jsonTags = new Set(['str', 'int', 'float', 'bool', 'null', 'map', 'seq', 'merge'])

/** Values below a node that are said to be what no field of an object can hold, by their fields. */
export function tagProblems(root: unknown): FieldProblem[] {
  const problems: FieldProblem[] = []
  const look = (node: unknown, path: readonly PathStep[]): void => {
    const name = strangeTag(node)
    if (name !== undefined) {
      const message = `has the YAML tag !!${name}, which stands for what no field can hold; write the value without it`
      problems.push({ path: formatPath(path), message })
    }
    for (const [step, part] of partsOf(node)) look(part, [...path, step])
  }
  look(root, [])
  return problems
}

/** What a node is said to be that JSON does not have. */
function strangeTag(node: unknown): string | undefined {
  if (!isScalar(node) && !isCollection(node)) return undefined
  const { tag } = node
  if (tag?.startsWith(ownTags) !== true) return undefined
  const name = tag.slice(ownTags.length)
  return jsonTags.has(name) ? undefined : name
}

/** What a map or a list holds; an alias tells nothing that its anchor does not. */
function partsOf(node: unknown): [PathStep, unknown][] {
  if (isSeq(node)) return node.items.map((item, index) => [index, item])
  if (!isMap(node)) return []
  return node.items.map(({ key, value }) => [
    isScalar(key) ? String(key.source ?? key.value) : '',
    value,
  ])
}

/** How many values a node stands for, with what its aliases repeat; endless if they go round. */
function weigher(targets: AliasTargets): (node: unknown) => number {
  const known = new Map<unknown, number>()
  const weigh = (node: unknown): number => {
    if (isAlias(node)) return weigh(targets.get(node))
    if (isPair(node)) return weigh(node.value)
    if (!isCollection(node)) return 1
    const before = known.get(node)
    if (before !== undefined) return before
    known.set(node, Number.POSITIVE_INFINITY)
    const items: readonly unknown[] = node.items
    const weight = items.reduce((sum: number, item) => sum + weigh(item), 1)
    known.set(node, weight)
    return weight
  }
  return weigh
}
