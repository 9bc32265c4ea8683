/** What of YAML has no place in a manifest: found in the parsed nodes, before values are made of them. */
import {
  type Document,
  isAlias,
  isCollection,
  isNode,
  isPair,
  isScalar,
  type Node,
  visit,
} from 'yaml'

export interface NodeProblem {
  readonly offset: number
  readonly message: string
}

/** Values that aliases in merges may stand for, all in all. */
const mergedLimit = 100_000

/** The first thing that gives no object: an alias to nothing, a key that is no text, endless merges. */
export function nodeProblem(document: Document.Parsed): NodeProblem | undefined {
  let found: NodeProblem | undefined
  let hasMerge = false
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return undefined
      found = problemAt(alias, 'not YAML: an alias names an anchor that is not set before it')
      return visit.BREAK
    },
    Pair(_, { key }) {
      if (isScalar(key)) {
        if (typeof key.value === 'symbol') hasMerge = true
        return undefined
      }
      if (!isNode(key)) return undefined
      const hint = 'is this a template that was not filled in?'
      found = problemAt(key, `a name of a field must be a text, not a list or map; ${hint}`)
      return visit.BREAK
    },
  })
  if (found !== undefined || !hasMerge) return found
  const weigh = weigher(document)
  if (weigh(document.contents) <= mergedLimit) return undefined
  return { offset: startOf(document), message: 'has too many aliases' }
}

export function startOf({ contents, range }: Document.Parsed): number {
  return contents?.range[0] ?? range[0]
}

function problemAt(node: Node, message: string): NodeProblem {
  return { offset: node.range?.[0] ?? 0, message }
}

/** How many values a node stands for, with what its aliases repeat; endless where they go round. */
function weigher(document: Document.Parsed): (node: unknown) => number {
  const known = new Map<unknown, number>()
  const weigh = (node: unknown): number => {
    if (isAlias(node)) return weigh(node.resolve(document))
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
