import { chmodSync, linkSync, mkdirSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ResourceEvent } from '../../../events/index.ts'
import {
  describeEvent,
  expectNews,
  expectProblem,
  folder,
  invalid,
  loseLog,
  route,
  run,
  write,
} from '../../../test/support/file-source-rig.ts'
import { eventually } from '../../../test/support/wait-for.ts'

describe('a broken file', () => {
  it('keeps its last good objects, and reports the position of the error', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    write('a.yaml', `${route('a', 'b.example')}  broken: [\n`)
    await expectProblem(source, /^a\.yaml:\d+:\d+: not YAML: /)
    write('a.yaml', route('a', 'c.example'))
    await expectNews(source, ['applied a generation 2'])
    expect(source.source.problems()).toEqual([])
  })

  it('keeps its last good objects across a restart', async () => {
    write('a.yaml', `${route('a')}---\n${route('b')}`)
    await (await run()).source.close()
    write('a.yaml', 'kind: [')
    const again = await run()
    expect(again.news()).toEqual(['relist started', 'relist finished with 2'])
    expect(again.problems).toHaveLength(1)
    write('a.yaml', route('b'))
    await expectNews(again, ['deleted a (watch)'])
  })

  it('keeps an object whose kind or name is now invalid, also across a restart', async () => {
    write('a.yaml', `${route('a')}---\n${route('b')}`)
    const source = await run()
    source.news()
    const broken = `${route('a').replace('HTTPRoute', 'HTTPRute')}---\n${route('b', 'b.example')}`
    write('a.yaml', broken)
    await expectNews(source, ['applied b generation 2'])
    expect(source.problems[0]).toMatch(
      /^a\.yaml:2:1: HTTPRute a: kind: HTTPRute is not a kind of .*HTTPRoute/,
    )
    await source.source.close()
    const again = await run()
    expect(again.news()).toEqual(['relist started', 'relist finished with 2'])
  })

  it.skipIf(process.getuid?.() === 0)('keeps its objects if it cannot be read', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    chmodSync(join(folder, 'a.yaml'), 0)
    await expectProblem(source, 'a.yaml: cannot be read: permission denied')
    expect(source.news()).toEqual([])
  })

  it('keeps the objects below it if it replaces a folder', async () => {
    write('sub/a.yaml', route('a'))
    const paths = [join(folder, 'sub')]
    await (await run(paths)).source.close()
    rmSync(join(folder, 'sub'), { recursive: true })
    symlinkSync('sub', join(folder, 'sub'))
    const again = await run(paths)
    expect(again.news()).toEqual(['relist started', 'relist finished with 1'])
    expect(again.problems).toEqual([
      expect.stringMatching(/^.*sub: cannot be read: too many links/),
    ])
  })

  it('is reported if it does not exist, and is read once it does', async () => {
    const missing = join(folder, 'missing')
    const source = await run([folder, missing])
    expect(source.problems).toEqual(['missing: cannot be read: no such file or folder'])
    source.news()
    write('missing/a.yaml', route('a'))
    await expectNews(source, ['applied a generation 1'])
    expect(source.source.problems()).toEqual([])
  })
})

describe('an invalid object', () => {
  it('is refused with the position of every problem, while valid objects are applied', async () => {
    write('a.yaml', `${route('good')}---\n${invalid('bad')}`)
    const source = await run()
    expect(source.news()).toEqual([
      'relist started',
      'applied good generation 1',
      'refused bad generation 1',
      'relist finished with 1',
    ])
    expect(source.problems[0]).toMatch(/^a\.yaml:15:3: HTTPRoute default\/bad: spec\.hostnams: /)
    expect(source.batches.flat()[2]?.data).toMatchObject({
      problems: [{ path: 'spec.hostnams', message: expect.any(String) }],
    })
  })

  it('keeps its last valid version, and gets a new generation when it is valid again', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    write('a.yaml', invalid('a'))
    await expectNews(source, ['refused a generation 2'])
    write('a.yaml', route('a'))
    await expectNews(source, ['applied a generation 3'])
    write('a.yaml', invalid('a'))
    await expectNews(source, ['refused a generation 4'])
    unlinkSync(join(folder, 'a.yaml'))
    await expectNews(source, ['deleted a (watch)'])
  })

  it('keeps the targets of a policy, so that they can fail closed', async () => {
    write(
      'policy.yaml',
      `apiVersion: sluice.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}]
  traffic:
    authorization: {action: Perhaps}
    timeouts: {request: 5s}
`,
    )
    const { batches } = await run()
    expect(batches.flat()[1]?.data).toMatchObject({
      targets: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'shop' }],
      appliesTo: ['traffic.authorization', 'traffic.timeouts'],
    })
  })

  it('is also one that is too large for an event', async () => {
    const data = { text: 'x'.repeat(1_100_000) }
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data }
    write('a.json', JSON.stringify(map))
    const source = await run()
    expect(source.news()).toContain('refused large generation 1')
    expect(source.problems[0]).toMatch(
      /^a\.json:1:1: ConfigMap default\/large: the object has \d+ b/,
    )
  })
})

describe('an object that exceeds limits', () => {
  it('is refused in an event of normal size, and does not affect other objects', async () => {
    const spec = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`${index}${'x'.repeat(20_000)}`, 1]),
    )
    const many = { apiVersion: 'sluice.dev/v1alpha1', kind: 'GatewayPolicy', spec }
    write('a.json', JSON.stringify({ ...many, metadata: { name: 'many' } }))
    write('b.json', JSON.stringify({ ...many, metadata: { name: 'n'.repeat(2_000_000) } }))
    write('c.yaml', route('good'))
    const source = await run()
    expect(source.news()).toEqual([
      'relist started',
      'refused many generation 1',
      expect.stringMatching(/^refused n{200}~\w+ generation 1$/),
      'applied good generation 1',
      'relist finished with 1',
    ])
    const tooLong =
      /^b\.json:1:\d+: GatewayPolicy default\/n+~\w+: metadata\.name: must have at most 253 char/
    expect(source.problems).toContainEqual(expect.stringMatching(tooLong))
  })

  it.each([
    ['a name with a slash', route('a/b'), 'a%2Fb'],
    ['a name that is not UTF-8', route('"\\uD800"'), '%EF%BF%BD'],
    [
      'a reference to itself',
      route('loop').replace('spec:', 'spec: &spec\n  rules: [*spec]'),
      'loop',
    ],
    [
      'excessive nesting',
      route('deep').replace('spec:', `spec:\n  x: ${'['.repeat(200)}${']'.repeat(200)}`),
      'deep',
    ],
    ['a field named __proto__', route('proto').replace('spec:', 'spec:\n  __proto__: {}'), 'proto'],
  ])('is refused if it has %s, and does not affect other objects', async (_, content, name) => {
    write('a.yaml', content)
    write('b.yaml', route('good'))
    const source = await run()
    expect(source.news()).toEqual([
      'relist started',
      `refused ${name} generation 1`,
      'applied good generation 1',
      'relist finished with 1',
    ])
    await source.source.rescan()
    expect(source.news()).toEqual([])
  })

  it('may have thousands of fields, but only a limited number of aliases', async () => {
    const lines = Array.from({ length: 2_000 }, (_, index) => `  k${index}: &a${index} 1\n`)
    write('a.yaml', route('many') + lines.join(''))
    const aliases = Array.from({ length: 10_001 }, () => '*a').join(',')
    write('b.yaml', `a: &a 1\nb: [${aliases}]\n`)
    write('c.yaml', route('twice').replace('spec:', 'spec: {}\nspec:'))
    const source = await run()
    expect(source.news()).toContain('refused many generation 1')
    expect(source.problems).toContainEqual(expect.stringMatching(/^b\.yaml:2:.*too many aliases/))
    expect(source.problems).toContainEqual(expect.stringMatching(/^c\.yaml:6:1: .*has this field already/))
  })
})

describe('two definitions of one object', () => {
  it('keep the first in force, and report both positions', async () => {
    write('a.yaml', route('same', 'first.example'))
    write('b.yaml', `---\n${route('same', 'second.example')}`)
    const source = await run()
    expect(source.news()).toEqual([
      'relist started',
      'applied same generation 1',
      'relist finished with 1',
    ])
    expect(source.problems).toEqual([
      `b.yaml:2:1: HTTPRoute default/same: is defined at ${folder}/a.yaml:1 already; this one is refused`.replaceAll(
        `${folder}/`,
        '',
      ),
    ])
    unlinkSync(join(folder, 'a.yaml'))
    await expectNews(source, ['applied same generation 2'])
  })

  it('keep the first in force if both are in one file', async () => {
    write('a.yaml', `${route('same', 'first.example')}---\n${route('same', 'second.example')}`)
    const source = await run()
    const [, applied] = source.batches.flat()
    expect(applied?.data).toMatchObject({ object: { spec: { hostnames: ['first.example'] } } })
    expect(source.problems).toHaveLength(1)
  })
})

describe('a change without a file notification', () => {
  /** Links a file into the configured folder; returns a function that edits it elsewhere. */
  function otherName(): () => void {
    write('elsewhere/a.yaml', route('a'))
    mkdirSync(join(folder, 'given'))
    linkSync(join(folder, 'elsewhere', 'a.yaml'), join(folder, 'given', 'a.yaml'))
    return () => write('elsewhere/a.yaml', route('a', 'b.example'))
  }

  it('is found by a rescan, between the events of a relist', async () => {
    const change = otherName()
    const source = await run([join(folder, 'given')])
    source.news()
    change()
    await source.source.rescan()
    expect(source.news()).toEqual([
      'relist started',
      'applied a generation 2',
      'relist finished with 1',
    ])
    await source.source.rescan()
    expect(source.news()).toEqual([])
  })

  it('is found by periodic rescans', async () => {
    const change = otherName()
    const source = await run([join(folder, 'given')], { timing: { rescanMs: 20 } })
    source.news()
    change()
    await expectNews(source, ['relist started', 'applied a generation 2', 'relist finished with 1'])
  })
})

describe('the file source, if the log fails', () => {
  it('retries changes whose append failed', async () => {
    write('a.yaml', route('a'))
    let failures = 0
    const taken: (readonly ResourceEvent[])[] = []
    const source = await run([folder], {
      timing: { retryMs: 5 },
      onChange: async (events) => {
        if (taken.length > 0 && failures++ < 2) throw new Error('disk full')
        taken.push(events)
      },
    })
    write('b.yaml', route('b'))
    await eventually(() =>
      expect(taken.flat().map(describeEvent)).toContain('applied b generation 1'),
    )
    expect(failures).toBe(3)
    await expectProblem(source, /disk full/)
  })

  it('appends all objects again to a new log', async () => {
    write('a.yaml', route('a'))
    await (await run()).source.close()
    loseLog()
    expect((await run()).news()).toContain('applied a generation 1')
  })
})
