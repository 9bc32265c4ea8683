import type { IntegerNode, Node, TextNode } from './field.ts'

/** Describes the type of a value in a few words, such as `list of SNI, 1..16 items`. */
export function typeLabel(node: Node): string {
  switch (node.type) {
    case 'text':
      return node.name ?? textLabel(node)
    case 'integer':
      return integerLabel(node)
    case 'boolean':
      return 'boolean'
    case 'list':
      return `list of ${typeLabel(node.items)}${range(node.min, node.max, 'items')}`
    case 'map':
      return `map of ${typeLabel(node.values)}${range(undefined, node.max, 'entries')}`
    case 'object':
      return node.name ?? 'object'
    case 'json':
      return node.objectOnly === true ? 'JSON object' : 'JSON'
    case 'intOrString':
      return node.expects ?? 'integer or string'
  }
}

function textLabel(node: TextNode): string {
  if (node.values !== undefined) return node.values.map((value) => `\`${value}\``).join(', ')
  const form = node.expects === undefined ? '' : `, ${node.expects}`
  return `string${range(node.min, node.max, 'characters')}${form}`
}

function integerLabel(node: IntegerNode): string {
  if (node.values !== undefined) return node.values.join(', ')
  return `integer${node.bytes === true ? ' or quantity' : ''}${range(node.min, node.max, '')}`
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  const after = unit === '' ? '' : ` ${unit}`
  if (min !== undefined && max !== undefined) return `, ${min}..${max}${after}`
  if (min !== undefined) return `, at least ${min}${after}`
  return max === undefined ? '' : `, at most ${max}${after}`
}
