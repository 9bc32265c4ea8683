/** The comparison with Envoy and, where it is installed, nginx; `npm run differential` is the command. */
import { describe, expect, it } from 'vitest'
import { describeWithParts } from '../support/parts.ts'
import { absenceOf } from '../support/real-proxies.ts'
import { cases } from './cases/index.ts'
import { differencesOf, judge, readExplanations, rowOf } from './differences.ts'
import { compareAll, parseOptions } from './main.ts'

const row = (part: string, own: string, theirs: string, reason = 'A reason.') =>
  `| \`paths/*\` | nginx | \`${part}\` | ${own} | ${theirs} | RFC 9110 7.1 | ${reason} |`

describe('the explanations of differences', () => {
  const own = new Map([
    ['response.status', '200'],
    ['response.from', 'the server'],
    ['requests', '1'],
    ['request.line', 'GET /a|b HTTP/1.1'],
  ])
  const theirs = new Map([...own, ['request.line', 'GET /a HTTP/1.1']])
  const differences = differencesOf('paths/x', own, 'nginx', theirs)

  it('cover a difference whose case, peer, part and values fit', () => {
    const text = row('request.line', '`GET /a\\|b HTTP/1.1`', '`GET * HTTP/1.1`')
    expect(judge(differences, readExplanations(text))).toEqual({ unexplained: [], stale: [] })
  })

  it('do not cover a difference with another value, and are stale then', () => {
    const rows = readExplanations(row('request.line', '–', '`GET /a HTTP/1.1`'))
    expect(judge(differences, rows)).toEqual({ unexplained: differences, stale: rows })
  })

  it('are read again from the rows that the command proposes', () => {
    const [text = ''] = differences.map((one) => rowOf(one).replace('|  |  |', '| RFC 9110 | A. |'))
    expect(judge(differences, readExplanations(text)).unexplained).toEqual([])
  })

  it('must have a section and a reason', () => {
    expect(() => readExplanations(row('request.line', '–', '–', ''))).toThrow(
      'docs/differences.md:1: expected 7 cells',
    )
  })

  it('list one difference if the exchanges did not end in the same way', () => {
    const refused = new Map([
      ['response.status', '400'],
      ['response.from', 'the proxy'],
      ['requests', '0'],
    ])
    expect(differencesOf('paths/x', own, 'envoy', refused)).toEqual([
      {
        name: 'paths/x',
        peer: 'envoy',
        part: 'outcome',
        own: '200 of the server',
        theirs: '400 of the proxy',
      },
    ])
  })
})

it('has a different name for each case', () => {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
})

it('refuses unknown cases and peers', () => {
  expect(() => parseOptions(['nothing/'])).toThrow('no case begins with nothing/')
  expect(() => parseOptions(['--without', 'apache'])).toThrow('--without takes nginx or envoy')
})

describeWithParts(['envoy'], 'the same requests through Sluice and other proxies', () => {
  const present = (['nginx', 'envoy'] as const).filter((peer) => absenceOf(peer) === undefined)

  it('differ only as docs/differences.md explains', { timeout: 300_000 }, async () => {
    const rows = readExplanations().filter(({ peer }) => present.includes(peer))
    const { unexplained, stale } = judge(await compareAll(cases, present), rows)
    expect(unexplained.map(rowOf)).toEqual([])
    expect(stale.map(({ line, name, part }) => `${line}: ${name} ${part}`)).toEqual([])
  })
})
