import type { Node, ObjectNode, TextNode } from './field.ts'

/** The types that a reference page explains. */
interface NamedTypes {
  /** Objects, each before the objects of its fields. */
  readonly objects: readonly ObjectNode[]
  /** Named strings: with bounds, with a form, or with a fixed set of values. */
  readonly strings: readonly TextNode[]
}

/** Every named type below a node, each name once, in order of first appearance. */
export function namedTypes(root: Node): NamedTypes {
  const objects = new Map<string, ObjectNode>()
  const strings = new Map<string, TextNode>()
  const queue: Node[] = [root]
  for (const node of queue) {
    if (node.type === 'object') {
      const { name = '' } = node
      if (objects.has(name)) continue
      objects.set(name, node)
    }
    if (node.type === 'text' && node.name !== undefined) strings.set(node.name, node)
    queue.push(...partsOf(node))
  }
  return { objects: [...objects.values()], strings: [...strings.values()] }
}

/** The nodes directly below a node. */
function partsOf(node: Node): readonly Node[] {
  switch (node.type) {
    case 'object':
      return Object.values(node.fields).map((property) => property.schema.node)
    case 'list':
      return [node.items]
    case 'map':
      return [node.values]
    default:
      return []
  }
}
