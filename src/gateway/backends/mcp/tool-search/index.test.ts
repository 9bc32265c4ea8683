import { describe, expect, it } from 'vitest'
import { recallAt, sampleTools } from '../../../../../test/support/tool-set.ts'
import { matchesAny } from '../patterns.ts'
import { ToolIndex } from './index.ts'
import { wordsOf } from './words.ts'

const index = new ToolIndex(
  sampleTools.map(({ server, name, description, inputSchema }) => ({
    name: `${server} ${name}`,
    description,
    parameters: Object.keys(inputSchema.properties).map((one) => [one, ''] as const),
  })),
)

describe('ToolIndex', () => {
  it('has an expected tool among the first five for 97 % of the questions about 500 tools', () => {
    expect(sampleTools).toHaveLength(500)
    const { recall, missed } = recallAt(5, (query) => index.search(query))
    expect(recall, missed.join('\n')).toBeGreaterThanOrEqual(0.97)
  })

  it('gives the same result for each search, whatever was searched before', () => {
    const first = index.search('create an invoice in quickbooks')
    index.search('delete the bucket')
    expect(index.search('create an invoice in quickbooks')).toEqual(first)
    expect(sampleTools[first[0] ?? -1]).toMatchObject({ name: 'create_invoice' })
  })

  it('finds nothing for queries without words, and reads only the beginning of long ones', () => {
    expect(index.search('')).toEqual([])
    expect(index.search('the and of 🙂 --')).toEqual([])
    expect(index.search(`${'x'.repeat(10_000)} invoice`)).toEqual([])
    expect(index.search(`invoice ${'word '.repeat(10_000)}`)).not.toEqual([])
    expect(new ToolIndex([]).search('invoice')).toEqual([])
  })

  it('compares forms of words and parts of names', () => {
    expect(wordsOf('createUserAccounts')).toEqual(wordsOf('Creating user_account'))
    expect(wordsOf('HTTPServer')).toEqual(wordsOf('http servers'))
    expect(wordsOf('stopped policies')).toEqual(wordsOf('stopping policy'))
  })
})

describe('patterns of names', () => {
  it.each([
    ['*', ''],
    ['a*', 'a'],
    ['*_report', 'hr_report'],
    ['a*b*c', 'axxbyyc'],
    ['a**c', 'abc'],
  ])('%s matches %j', (pattern, name) => {
    expect(matchesAny([pattern], name)).toBe(true)
  })

  it.each([
    ['a', 'ab'],
    ['a*a', 'a'],
    ['a*b*b', 'axb'],
    ['*ab*', 'a'],
    ['A', 'a'],
  ])('%s does not match %j', (pattern, name) => {
    expect(matchesAny([pattern], name)).toBe(false)
  })
})
