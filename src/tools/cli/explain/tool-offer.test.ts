import { expect, it } from 'vitest'
import type { McpTarget } from '../../../ground/model/mcp-targets.ts'
import type { ListedItemRow } from '../../../past/explain/listed-items.ts'
import { type OfferingBackend, offerLines, offerOf } from './tool-offer.ts'

const target = (name: string, more: Partial<McpTarget> = {}): McpTarget => ({
  name,
  sections: [name],
  protocol: 'StreamableHTTP',
  path: '/mcp',
  destination: { type: 'static', host: 'example.com', port: 80 },
  ...more,
})
const row = (targetName: string, name: string, list = 'tools') =>
  ({ backend: 'default/both', target: targetName, list, name }) as unknown as ListedItemRow
const rows = [row('a', 'echo'), row('a', 'drop'), row('b', 'echo'), row('b', 'list')]
const linesOf = (backend: OfferingBackend, targetName: string, name: string) =>
  offerLines(offerOf(backend, row(targetName, name), rows))

it('names the item as clients see it, and other targets with the same name', () => {
  const targets = [target('a'), target('b')]
  expect(linesOf({ targets }, 'a', 'echo')).toEqual([
    'clients see it as a_echo; b has the same name',
  ])
  const conditional = { targets, prefixMode: 'Conditional' } as const
  expect(linesOf(conditional, 'b', 'list')).toEqual(['clients see it as list'])
  expect(linesOf(conditional, 'b', 'echo')).toEqual([
    'clients see it as b_echo; a has the same name',
  ])
  const never = { targets, prefixMode: 'Never' } as const
  expect(linesOf(never, 'b', 'echo')).toEqual(['hidden by prefixMode Never: a has the same name'])
})

it('says which selection hides an item, and which virtual servers have it', () => {
  const chosen = target('a', {
    tools: {
      include: [],
      exclude: ['drop*'],
      overrides: [{ name: 'echo', as: 'repeat' }],
    },
  })
  const server = (name: string, include: string[], targets: string[] = []) => ({
    name,
    include,
    exclude: [],
    targets,
  })
  const backend = {
    targets: [chosen, target('b')],
    virtualServers: [server('all', []), server('lists', ['*_list']), server('of-b', [], ['b'])],
  }
  expect(linesOf(backend, 'a', 'drop')).toEqual(['hidden by tools of target a'])
  expect(linesOf(backend, 'a', 'echo')).toEqual([
    'clients see it as a_repeat',
    'virtual server all: has it',
    'virtual server lists: does not have it',
    'virtual server of-b: does not have it',
  ])
  expect(linesOf(backend, 'b', 'list').slice(1)).toEqual([
    'virtual server all: has it',
    'virtual server lists: has it',
    'virtual server of-b: has it',
  ])
  expect(offerOf(backend, row('a', 'x://r', 'resources'), rows)).toBeUndefined()
})
