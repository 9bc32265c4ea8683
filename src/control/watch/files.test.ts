import { renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  expectNews,
  folder,
  invalid,
  log,
  route,
  run,
  sourceName,
  write,
} from '../../../test/support/file-source-rig.ts'
import { eventually } from '../../../test/support/wait-for.ts'

describe('the file source at its start', () => {
  it('lists nested folders in the order of paths and documents, in one relist', async () => {
    write('b.yml', route('second'))
    write('a.yaml', `${route('first')}---\n${route('also-first')}`)
    write('deep/er/c.json', JSON.stringify({ kind: 'List', items: [] }))
    write('deep/er/d.yaml', route('third'))
    write('notes.txt', 'nothing to read')
    write('.hidden.yaml', route('hidden'))
    const source = await run()
    expect(source.news()).toEqual([
      'relist started',
      'applied first generation 1',
      'applied also-first generation 1',
      'applied second generation 1',
      'applied third generation 1',
      'relist finished with 4',
    ])
    expect(source.batches).toHaveLength(1)
    expect(source.problems).toEqual([])
  })

  it('records identity, file position and the default namespace', async () => {
    write('a.yaml', `# comment\n---\n${route('one')}`)
    const { batches } = await run()
    expect(batches.flat()[1]).toMatchObject({
      id: expect.stringMatching(/^0:[0-9a-f-]{36}:1-[0-9a-f]{16}-[0-9a-f]{16}:dev\.sluice\.res/),
      subject: 'sluice.local.HTTPRoute.default.one',
      source: sourceName,
      time: '2026-01-02T03:04:05.678Z',
      data: {
        kind: 'HTTPRoute',
        namespace: 'default',
        origin: { file: join(folder, 'a.yaml'), line: 3 },
        object: { metadata: { name: 'one', namespace: 'default' } },
      },
    })
  })

  it('appends only the relist events if the log is up to date', async () => {
    write('a.yaml', `${route('one')}---\n${invalid('bad')}`)
    await (await run()).source.close()
    const again = await run()
    expect(again.news()).toEqual(['relist started', 'relist finished with 1'])
    expect(again.problems).toHaveLength(1)
  })

  it('appends the differences after a pause, with missing objects deleted by the relist', async () => {
    write('a.yaml', route('stays'))
    write('b.yaml', route('changes'))
    write('c.yaml', route('goes'))
    await (await run()).source.close()
    write('b.yaml', route('changes', 'other.example'))
    unlinkSync(join(folder, 'c.yaml'))
    const again = await run()
    expect(again.news()).toEqual([
      'relist started',
      'applied changes generation 2',
      'deleted goes (relist)',
      'relist finished with 2',
    ])
  })

  it('gives equal digests to equal objects, and different ones to different objects', async () => {
    write('a.yaml', route('one'))
    const digests: unknown[] = []
    for (const hostname of ['a.example', 'a.example', 'b.example']) {
      write('a.yaml', route('one', hostname))
      const { batches, source } = await run()
      digests.push(batches.flat().at(-1)?.data)
      await source.close()
    }
    expect(digests[1]).toEqual(digests[0])
    expect(digests[2]).not.toEqual(digests[0])
  })

  it('includes built-in objects, which a file may override', async () => {
    const builtIn = [
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'GatewayClass',
        metadata: { name: 'agentgateway' },
        spec: { controllerName: 'sluice.dev/gateway-controller' },
      },
    ]
    const source = await run([folder], { builtIn })
    expect(source.news()).toContain('applied agentgateway generation 1')
    write('class.yaml', JSON.stringify({ ...builtIn[0], spec: { controllerName: 'a.b/c' } }))
    await expectNews(source, ['applied agentgateway generation 2'])
    unlinkSync(join(folder, 'class.yaml'))
    await expectNews(source, ['applied agentgateway generation 3'])
    expect(source.problems).toEqual([])
  })

  it('skips foreign kinds with a warning', async () => {
    write('a.yaml', 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n')
    const source = await run()
    expect(source.problems).toEqual([
      'a.yaml:2:1: warning: Deployment x: kind: apps/v1 Deployment is not read and has no effect',
    ])
  })
})

describe('an edit of a file', () => {
  it('is recorded as one event for the changed object', async () => {
    for (const name of ['a', 'b', 'c']) write(`${name}.yaml`, route(name))
    const source = await run()
    source.news()
    write('b.yaml', route('b', 'new.example'))
    await expectNews(source, ['applied b generation 2'])
    write('b.yaml', route('b', 'new.example', '\n  labels: {tier: gold}'))
    await expectNews(source, ['applied b generation 2'])
  })

  it('back to earlier content is recorded as a new version', async () => {
    write('a.yaml', route('a', 'one.example'))
    const source = await run()
    source.news()
    for (const [hostname, generation] of [
      ['two.example', 2],
      ['one.example', 3],
      ['two.example', 4],
    ] as const) {
      write('a.yaml', route('a', hostname))
      await expectNews(source, [`applied a generation ${generation}`])
    }
    expect(await log.lastPosition()).toBe(6)
  })

  it('of comments and white space records nothing', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    write('a.yaml', `# a comment\n\n${route('a')}`)
    write('b.yaml', route('b'))
    await expectNews(source, ['applied b generation 1'])
  })

  it('by atomic rename is found every time', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    for (const number of [2, 3, 4]) {
      write('.a.yaml.tmp', route('a', `v${number}.example`))
      renameSync(join(folder, '.a.yaml.tmp'), join(folder, 'a.yaml'))
      await expectNews(source, [`applied a generation ${number}`])
    }
  })

  it('is found if the file itself is the configured path, including renames', async () => {
    write('given.conf', route('a'))
    const source = await run([join(folder, 'given.conf')])
    source.news()
    write('given.conf', route('a', 'b.example'))
    await expectNews(source, ['applied a generation 2'])
    write('next', route('a', 'c.example'))
    renameSync(join(folder, 'next'), join(folder, 'given.conf'))
    await expectNews(source, ['applied a generation 3'])
  })

  it('that empties a file for a moment does not delete its objects', async () => {
    write('a.yaml', route('a'))
    const source = await run([folder], { timing: { quietMs: 2_000 } })
    source.news()
    write('a.yaml', '')
    write('b.yaml', route('b'))
    await expectNews(source, ['applied b generation 1'])
    write('a.yaml', route('a', 'b.example'))
    await expectNews(source, ['applied a generation 2'])
  })
})

describe('files that are added, removed and linked', () => {
  it('add and remove their objects', async () => {
    const source = await run()
    source.news()
    write('new.yaml', `${route('one')}---\n${route('two')}`)
    await expectNews(source, ['applied one generation 1', 'applied two generation 1'])
    write('new.yaml', route('two'))
    await expectNews(source, ['deleted one (watch)'])
    unlinkSync(join(folder, 'new.yaml'))
    await expectNews(source, ['deleted two (watch)'])
  })

  it('give an object that is created again a new uid', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    unlinkSync(join(folder, 'a.yaml'))
    await eventually(() => expect(source.batches).toHaveLength(2))
    write('a.yaml', route('a'))
    await eventually(() => expect(source.batches).toHaveLength(3))
    const uids = source.batches.flat().flatMap(({ data }) => ('uid' in data ? data.uid : []))
    expect(uids[0]).toBe(uids[1])
    expect(uids[2]).not.toBe(uids[0])
  })

  it('are found in new folders, and removed with deleted folders', async () => {
    const source = await run()
    source.news()
    write('new/deep/a.yaml', route('a'))
    await expectNews(source, ['applied a generation 1'])
    write('new/deep/a.yaml', route('a', 'b.example'))
    await expectNews(source, ['applied a generation 2'])
    rmSync(join(folder, 'new'), { recursive: true })
    await expectNews(source, ['deleted a (watch)'])
  })

  it('are found in a folder that was deleted and created again', async () => {
    write('sub/a.yaml', route('a'))
    const source = await run([join(folder, 'sub')])
    source.news()
    for (const generation of [2, 4]) {
      rmSync(join(folder, 'sub'), { recursive: true })
      write('sub/a.yaml', route('a', `again${generation}.example`))
      await expectNews(source, [`applied a generation ${generation}`])
      write('sub/a.yaml', route('a', `edited${generation}.example`))
      await expectNews(source, [`applied a generation ${generation + 1}`])
    }
  })

  it('are found after an atomic swap of a mounted volume', async () => {
    write('..v1/a.yaml', route('a', 'v1.example'))
    symlinkSync('..v1', join(folder, '..data'))
    symlinkSync('..data/a.yaml', join(folder, 'a.yaml'))
    const source = await run()
    expect(source.news()).toContain('relist finished with 1')
    for (const version of [2, 3]) {
      write(`..v${version}/a.yaml`, route('a', `v${version}.example`))
      symlinkSync(`..v${version}`, join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
      await expectNews(source, [`applied a generation ${version}`])
    }
  })

  it('are found after a swap of a configured folder that is a link', async () => {
    for (const version of [1, 2]) write(`v${version}/a.yaml`, route('a', `v${version}.example`))
    symlinkSync('v1', join(folder, 'current'))
    const source = await run([join(folder, 'current')])
    source.news()
    symlinkSync('v2', join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'current'))
    await expectNews(source, ['applied a generation 2'])
    write('v2/a.yaml', route('a', 'v3.example'))
    await expectNews(source, ['applied a generation 3'])
  })

  it('are not reported as duplicates if they are moved', async () => {
    write('b.yaml', route('a'))
    const source = await run()
    const moves = [
      ['b.yaml', 'a.yaml', 2],
      ['a.yaml', 'c.yaml', 3],
    ] as const
    for (const [from, to, generation] of moves) {
      renameSync(join(folder, from), join(folder, to))
      await source.source.rescan()
      write(to, route('a', `${to}.example`))
      await eventually(() => expect(source.news()).toContain(`applied a generation ${generation}`))
    }
    expect(source.problems).toEqual([])
  })

  it('are found through symbolic links, and a broken link is reported', async () => {
    write('shared/a.yaml', route('a'))
    write('mine/b.yaml', route('b'))
    symlinkSync('../shared/a.yaml', join(folder, 'mine/a.yaml'))
    const source = await run([join(folder, 'mine')])
    expect(source.news()).toContain('relist finished with 2')
    write('shared/a.yaml', route('a', 'edited.example'))
    await expectNews(source, ['applied a generation 2'])
    symlinkSync('../shared/c.yaml', join(folder, 'mine/c.yaml'))
    await eventually(() =>
      expect(source.problems).toEqual(['mine/c.yaml: cannot be read: a link that leads nowhere']),
    )
    write('shared/c.yaml', route('c'))
    await source.source.rescan()
    expect(source.news()).toContain('applied c generation 1')
    expect(source.source.problems()).toEqual([])
  })

  /** Puts a link in place of another in one step, as mounted volumes do. */
  const relink = (target: string, link: string) => {
    symlinkSync(target, join(folder, `${link}_tmp`))
    renameSync(join(folder, `${link}_tmp`), join(folder, link))
  }

  it('are found through a link into a mounted volume that is swapped', async () => {
    write('mount/..v1/a.yaml', route('a', 'v1.example'))
    symlinkSync('..v1', join(folder, 'mount/..data'))
    symlinkSync('..data/a.yaml', join(folder, 'mount/a.yaml'))
    write('mine/b.yaml', route('b'))
    symlinkSync('../mount/a.yaml', join(folder, 'mine/a.yaml'))
    const source = await run([join(folder, 'mine')])
    expect(source.news()).toContain('relist finished with 2')
    for (const version of [2, 3]) {
      write(`mount/..v${version}/a.yaml`, route('a', `v${version}.example`))
      relink(`..v${version}`, 'mount/..data')
      await expectNews(source, [`applied a generation ${version}`])
    }
    write('mount/..v3/a.yaml', route('a', 'v4.example'))
    await expectNews(source, ['applied a generation 4'])
  })

  it('are found through chains of links, in a configured folder and below one', async () => {
    for (const version of [1, 2]) {
      write(`store/v${version}/a.yaml`, route('a', `v${version}.example`))
      write(`store/w${version}/sub/b.yaml`, route('b', `w${version}.example`))
    }
    symlinkSync('v1', join(folder, 'store/current'))
    symlinkSync('w1', join(folder, 'store/above'))
    symlinkSync('store/current', join(folder, 'root'))
    write('tree/c.yaml', route('c'))
    symlinkSync('../store/above/sub', join(folder, 'tree/below'))
    const source = await run([join(folder, 'root'), join(folder, 'tree')])
    expect(source.news()).toContain('relist finished with 3')
    relink('v2', 'store/current')
    await expectNews(source, ['applied a generation 2'])
    relink('w2', 'store/above')
    await expectNews(source, ['applied b generation 2'])
    write('store/v2/a.yaml', route('a', 'v3.example'))
    await expectNews(source, ['applied a generation 3'])
    write('store/w2/sub/b.yaml', route('b', 'w3.example'))
    await expectNews(source, ['applied b generation 3'])
  })

  it('are found once a broken link gets a target', async () => {
    write('mine/b.yaml', route('b'))
    symlinkSync('../late/now/a.yaml', join(folder, 'mine/a.yaml'))
    const source = await run([join(folder, 'mine')])
    source.news()
    write('late/v1/a.yaml', route('a'))
    symlinkSync('v1', join(folder, 'late/now'))
    await expectNews(source, ['applied a generation 1'])
  })

  it('are read once even if links form a cycle', async () => {
    write('a.yaml', route('a'))
    symlinkSync('.', join(folder, 'circle'))
    const source = await run()
    expect(source.news()).toContain('relist finished with 1')
    expect(source.problems).toEqual([])
  })
})
