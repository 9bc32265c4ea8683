/** Checks parsed nodes, before they become values, for YAML that manifests must not have. */
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

const repeatedText = 'not YAML: the object has this field already: remove one of the two'

/** Maximum number of values in a document with merge keys, after its aliases are resolved. */
const mergedLimit = 100_000

/** Maximum number of aliases in a document, since the time to resolve each one grows with their number. */
const aliasLimit = 10_000

/**
 * Returns the first problem of a document, such as an unknown alias or a key that is repeated or no scalar.
 */
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

/** Reports a repeated key in linear time; the parser's own check compares every pair of keys. */
function repeatedKey(
  map: { readonly items: readonly { readonly key: unknown }[] },
  stopAt: (node: Node, message: string) => symbol,
): symbol | undefined {
  const seen = new Set<unknown>()
  for (const { key } of map.items) {
    // Merge keys may repeat.
    if (!isScalar(key) || typeof key.value === 'symbol') continue
    if (seen.has(key.value)) return stopAt(key, repeatedText)
    seen.add(key.value)
  }
  return undefined
}

export function startOf({ contents, range }: Document.Parsed): number {
  return contents?.range[0] ?? range[0]
}

/** Prefix of YAML's own tags. Tags of applications are allowed, since they leave the text as it is. */
const ownTags = 'tag:yaml.org,2002:'
/** YAML's own tags for types that JSON has, and for merge keys. */
const jsonTags = new Set(['str', 'int', 'float', 'bool', 'null', 'map', 'seq', 'merge'])

/** Reports values with a YAML tag for a type that JSON does not have, such as `!!binary`. */
export function tagProblems(root: unknown): FieldProblem[] {
  const problems: FieldProblem[] = []
  const look = (node: unknown, path: readonly PathStep[]): void => {
    const name = foreignTag(node)
    if (name !== undefined) {
      const message = `has the YAML tag !!${name}, which stands for what no field can hold; write the value without it`
      problems.push({ path: formatPath(path), message })
    }
    for (const [step, part] of partsOf(node)) look(part, [...path, step])
  }
  look(root, [])
  return problems
}

/** Returns the name of a YAML tag for a type that JSON does not have; undefined for any other node. */
function foreignTag(node: unknown): string | undefined {
  if (!isScalar(node) && !isCollection(node)) return undefined
  const { tag } = node
  if (tag?.startsWith(ownTags) !== true) return undefined
  const name = tag.slice(ownTags.length)
  return jsonTags.has(name) ? undefined : name
}

/** The members of a map or a list; aliases are skipped, since their anchors are checked. */
function partsOf(node: unknown): [PathStep, unknown][] {
  if (isSeq(node)) return node.items.map((item, index) => [index, item])
  if (!isMap(node)) return []
  return node.items.map(({ key, value }) => [
    isScalar(key) ? String(key.source ?? key.value) : '',
    value,
  ])
}

/** Returns a function that counts the values of a node with aliases resolved; infinite if cyclic. */
function weigher(targets: ReadonlyMap<unknown, Node>): (node: unknown) => number {
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
