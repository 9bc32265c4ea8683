/** Converts nodes to the Markdown of a reference page. */
import { formatDefault } from './describe.ts'
import type { AnyProperty, Node, ObjectNode, Rule, TextNode } from './field.ts'
import { typeLabel } from './label.ts'

/** Returns one section for each named type, with its fields, values and rules. */
export function typeSections(root: Node): string {
  const objects = new Map<string, ObjectNode>()
  const strings = new Map<string, TextNode>()
  // Breadth first, each named type once: objects come before the objects of their fields.
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
  return [
    ...[...objects.values()].map(objectSection),
    ...[...strings.values()].map(stringSection),
  ].join('\n')
}

/** Returns the nodes directly below a node. */
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

/** Escapes text for a cell of a Markdown table. */
export function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line), ''].join('\n')
}

function objectSection(node: ObjectNode): string {
  const fields = Object.entries(node.fields)
  const body =
    fields.length === 0
      ? 'Has no fields; written as `{}`.\n'
      : table(['Field', 'Type', 'Default', 'What it does'], fields.map(fieldRow))
  return `## ${node.name ?? ''}\n\n${body}${ruleList(node.rules ?? [])}`
}

function fieldRow([name, property]: readonly [string, AnyProperty]): readonly string[] {
  const needed = property.required ? ' (required)' : ''
  const unit = property.unit === undefined ? '' : ` Unit: ${property.unit}.`
  return [
    `\`${name}\`${needed}`,
    cell(typeLabel(property.schema.node)),
    property.default === undefined ? '' : `\`${cell(formatDefault(property.default))}\``,
    cell(`${property.doc}${unit}`),
  ]
}

function ruleList(rules: readonly Rule[]): string {
  if (rules.length === 0) return ''
  return `\nRules:\n\n${rules.map(({ message }) => `- ${message}\n`).join('')}`
}

function stringSection(node: TextNode): string {
  const heading = `## ${node.name ?? ''}\n\n`
  const rules = ruleList(node.rules ?? [])
  if (node.values === undefined) {
    return `${heading}A ${typeLabel({ ...node, name: undefined })}.\n${rules}`
  }
  const rows = node.values.map((value) => [`\`${value}\``, cell(node.meanings?.[value] ?? '')])
  return `${heading}${table(['Value', 'Meaning'], rows)}${rules}`
}
