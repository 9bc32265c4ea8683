import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ResourceEvent } from '../../events/index.ts'
import { secretPaths } from '../api/fields.ts'
import { validateObject } from '../api/validate.ts'
import { MemoryLog } from '../log/index.ts'
import { randomDigestKey } from './digest-key.ts'
import { FileSource, type FileSourceOptions } from './files.ts'
import { ResourceIndex } from './resource-index.ts'
import { formatProblem } from './source-problem.ts'

const sourceName = '/sluice/test/files'

let folder: string
let log: MemoryLog
let running: Running[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-files-'))
  log = new MemoryLog()
  running = []
})
afterEach(async () => {
  for (const { source } of running) await source.close()
  await log.close()
  chmodSync(folder, 0o755)
  rmSync(folder, { recursive: true, force: true })
})

interface Running {
  readonly source: FileSource
  /** One line for each event since it was last asked, and the batches that they came in. */
  news(): string[]
  readonly batches: readonly (readonly ResourceEvent[])[]
  readonly problems: string[]
}

const digestKey = randomDigestKey()

/** A source that appends to the log of the test, beginning with what the log has. */
async function run(paths = [folder], more: Partial<FileSourceOptions> = {}): Promise<Running> {
  const index = new ResourceIndex(sourceName)
  for await (const { event } of log.read()) index.apply(event)
  const batches: (readonly ResourceEvent[])[] = []
  const problems: string[] = []
  let told = 0
  const source = new FileSource({
    paths,
    index,
    cluster: 'test',
    digestKey,
    validate: validateObject,
    secretPaths,
    clock: { now: () => 1_767_323_045_678 },
    onProblem: (problem) => problems.push(formatProblem(problem).replaceAll(`${folder}/`, '')),
    onChange: async (events) => {
      const appended = await log.append(events)
      if (!appended.ok) throw new Error(appended.problems[0]?.message)
      batches.push(events)
    },
    ...more,
  })
  const news = () => {
    const fresh = batches.flat().slice(told)
    told += fresh.length
    return fresh.map(describeEvent)
  }
  const started = { source, news, batches, problems }
  running.push(started)
  await source.start()
  return started
}

function describeEvent(event: ResourceEvent): string {
  switch (event.type) {
    case 'dev.sluice.resource.applied.v1':
      return `applied ${event.data.name} generation ${event.data.generation}`
    case 'dev.sluice.resource.refused.v1':
      return `refused ${event.data.name} generation ${event.data.generation}`
    case 'dev.sluice.resource.deleted.v1':
      return `deleted ${event.data.name} (${event.data.cause})`
    case 'dev.sluice.relist.started.v1':
      return 'relist started'
    case 'dev.sluice.relist.finished.v1':
      return `relist finished with ${event.data.count}`
  }
}

function route(name: string, hostname = 'a.example', extra = ''): string {
  return `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: ${name}${extra}
spec:
  parentRefs:
    - name: web
  hostnames: [${hostname}]
`
}

const invalid = (name: string) => route(name).replace('spec:', 'spec:\n  hostnams: [x]')

function write(file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), text)
}

/** The news of a source once they are these; fails with what came in their place. */
async function expectNews(source: Running, lines: readonly string[]): Promise<void> {
  const seen: string[] = []
  await vi.waitFor(
    () => {
      seen.push(...source.news())
      expect(seen).toEqual(lines)
    },
    { timeout: 3000, interval: 5 },
  )
}

async function expectProblem(source: Running, problem: string | RegExp): Promise<void> {
  const wanted = typeof problem === 'string' ? problem : expect.stringMatching(problem)
  await vi.waitFor(() => expect(source.problems).toContainEqual(wanted), { timeout: 5000 })
}

describe('the start of the file source', () => {
  it('lists folders to the bottom, in the order of paths and documents, between two marks', async () => {
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

  it('records identity, place and the default namespace', async () => {
    write('a.yaml', `# comment\n---\n${route('one')}`)
    const { batches } = await run()
    expect(batches.flat()[1]).toMatchObject({
      id: expect.stringMatching(/^0:[0-9a-f-]{36}:1-[0-9a-f]{16}-[0-9a-f]{16}:dev\.sluice\.res/),
      subject: 'sluice.test.HTTPRoute.default.one',
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

  it('appends nothing but the marks when the log knows everything', async () => {
    write('a.yaml', `${route('one')}---\n${invalid('bad')}`)
    await (await run()).source.close()
    const again = await run()
    expect(again.news()).toEqual(['relist started', 'relist finished with 1'])
    expect(again.problems).toHaveLength(1)
  })

  it('appends the differences after a pause, vanished objects as deleted by the relist', async () => {
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

  it('gives equal digests for equal objects, and others for others', async () => {
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

  it('has objects of its own that a file may define differently', async () => {
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

  it('passes over kinds of others with a warning', async () => {
    write('a.yaml', 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n')
    const source = await run()
    expect(source.problems).toEqual([
      'a.yaml:2:1: kind: apps/v1 Deployment is not read and has no effect',
    ])
  })
})

describe('an edit', () => {
  it('is one event about one object', async () => {
    for (const name of ['a', 'b', 'c']) write(`${name}.yaml`, route(name))
    const source = await run()
    source.news()
    write('b.yaml', route('b', 'new.example'))
    await expectNews(source, ['applied b generation 2'])
    write('b.yaml', route('b', 'new.example', '\n  labels: {tier: gold}'))
    await expectNews(source, ['applied b generation 2'])
  })

  it('back to an earlier content is a new version, which the log does not take for the old', async () => {
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

  it('of comments and spaces alone changes nothing', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    write('a.yaml', `# a comment\n\n${route('a')}`)
    write('b.yaml', route('b'))
    await expectNews(source, ['applied b generation 1'])
  })

  it('by an atomic rename is followed, time and again', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    for (const number of [2, 3, 4]) {
      write('.a.yaml.tmp', route('a', `v${number}.example`))
      renameSync(join(folder, '.a.yaml.tmp'), join(folder, 'a.yaml'))
      await expectNews(source, [`applied a generation ${number}`])
    }
  })

  it('of a file that was given by its own name is followed, renames included', async () => {
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
    const source = await run([folder], { timing: { settleMs: 2_000 } })
    source.news()
    write('a.yaml', '')
    write('b.yaml', route('b'))
    await expectNews(source, ['applied b generation 1'])
    write('a.yaml', route('a', 'b.example'))
    await expectNews(source, ['applied a generation 2'])
  })
})

describe('files that come and go', () => {
  it('bring their objects and take them along', async () => {
    const source = await run()
    source.news()
    write('new.yaml', `${route('one')}---\n${route('two')}`)
    await expectNews(source, ['applied one generation 1', 'applied two generation 1'])
    write('new.yaml', route('two'))
    await expectNews(source, ['deleted one (watch)'])
    unlinkSync(join(folder, 'new.yaml'))
    await expectNews(source, ['deleted two (watch)'])
  })

  it('give an object that comes again another uid', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    unlinkSync(join(folder, 'a.yaml'))
    await vi.waitFor(() => expect(source.batches).toHaveLength(2))
    write('a.yaml', route('a'))
    await vi.waitFor(() => expect(source.batches).toHaveLength(3))
    const uids = source.batches.flat().flatMap(({ data }) => ('uid' in data ? data.uid : []))
    expect(uids[0]).toBe(uids[1])
    expect(uids[2]).not.toBe(uids[0])
  })

  it('are found in folders that are new, and gone with folders that are gone', async () => {
    const source = await run()
    source.news()
    write('new/deep/a.yaml', route('a'))
    await expectNews(source, ['applied a generation 1'])
    write('new/deep/a.yaml', route('a', 'b.example'))
    await expectNews(source, ['applied a generation 2'])
    rmSync(join(folder, 'new'), { recursive: true })
    await expectNews(source, ['deleted a (watch)'])
  })

  it('are found in a folder that was deleted and made again', async () => {
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

  it('swap behind the links of a mounted volume', async () => {
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

  it('swap with a folder that is a link itself', async () => {
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

  it('are read once although links lead in a circle', async () => {
    write('a.yaml', route('a'))
    symlinkSync('.', join(folder, 'circle'))
    const source = await run()
    expect(source.news()).toContain('relist finished with 1')
    expect(source.problems).toEqual([])
  })
})

describe('a broken file', () => {
  it('keeps its last good objects, and says where it is broken', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    write('a.yaml', `${route('a', 'b.example')}  broken: [\n`)
    await expectProblem(source, /^a\.yaml:\d+:\d+: not YAML: /)
    write('a.yaml', route('a', 'c.example'))
    await expectNews(source, ['applied a generation 2'])
    expect(source.source.problems()).toEqual([])
  })

  it('keeps them across a restart as well', async () => {
    write('a.yaml', `${route('a')}---\n${route('b')}`)
    await (await run()).source.close()
    write('a.yaml', 'kind: [')
    const again = await run()
    expect(again.news()).toEqual(['relist started', 'relist finished with 2'])
    expect(again.problems).toHaveLength(1)
    write('a.yaml', route('b'))
    await expectNews(again, ['deleted a (watch)'])
  })

  it('keeps the object whose kind or name cannot be read, live and across a restart', async () => {
    write('a.yaml', `${route('a')}---\n${route('b')}`)
    const source = await run()
    source.news()
    const broken = `${route('a').replace('HTTPRoute', 'HTTPRute')}---\n${route('b', 'b.example')}`
    write('a.yaml', broken)
    await expectNews(source, ['applied b generation 2'])
    expect(source.problems[0]).toMatch(/^a\.yaml:2:1: kind: HTTPRute is not a kind of .*HTTPRoute/)
    await source.source.close()
    const again = await run()
    expect(again.news()).toEqual(['relist started', 'relist finished with 2'])
  })

  it.skipIf(process.getuid?.() === 0)('that cannot be read keeps its objects too', async () => {
    write('a.yaml', route('a'))
    const source = await run()
    source.news()
    chmodSync(join(folder, 'a.yaml'), 0)
    await expectProblem(source, 'a.yaml: cannot be read: permission denied')
    expect(source.news()).toEqual([])
  })

  it('in place of a folder keeps what the log has from below it', async () => {
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

  it('that does not exist is named, and read when it comes', async () => {
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
  it('is refused with every problem and its place, beside valid ones', async () => {
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

  it('keeps its last valid version, and comes back with another generation', async () => {
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

  it('tells what a policy was meant for, so that it can fail closed', async () => {
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

  it('is what an object becomes that is too large for an event', async () => {
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

describe('an object beyond measure', () => {
  it('is refused in an event of ordinary size, and holds up nothing else', async () => {
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
      'applied good generation 1',
      'relist finished with 1',
    ])
    const nameless = /^b\.json:1:\d+: metadata\.name: must have at most 253 characters$/
    expect(source.problems).toContainEqual(expect.stringMatching(nameless))
  })
})

describe('two definitions of one object', () => {
  it('leave the first in force and name both places', async () => {
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

  it('in one file leave the first in force as well', async () => {
    write('a.yaml', `${route('same', 'first.example')}---\n${route('same', 'second.example')}`)
    const source = await run()
    const [, applied] = source.batches.flat()
    expect(applied?.data).toMatchObject({ object: { spec: { hostnames: ['first.example'] } } })
    expect(source.problems).toHaveLength(1)
  })
})

describe('a change that no notification told of', () => {
  it('is found by looking at everything, between the marks of a relist', async () => {
    write('v1/a.yaml', route('a'))
    write('v2/a.yaml', route('b'))
    mkdirSync(join(folder, 'given'))
    symlinkSync('../v1/a.yaml', join(folder, 'given', 'a.yaml'))
    const source = await run([join(folder, 'given')])
    source.news()
    // The link stays, and what it leads to is in a folder that nobody watches.
    write('v1/a.yaml', route('a', 'b.example'))
    await source.source.rescan()
    expect(source.news()).toEqual([
      'relist started',
      'applied a generation 2',
      'relist finished with 1',
    ])
    await source.source.rescan()
    expect(source.news()).toEqual([])
  })

  it('is found in time without being asked for', async () => {
    write('elsewhere/a.yaml', route('a'))
    mkdirSync(join(folder, 'given'))
    symlinkSync('../elsewhere/a.yaml', join(folder, 'given', 'a.yaml'))
    const source = await run([join(folder, 'given')], { timing: { rescanMs: 20 } })
    source.news()
    write('elsewhere/a.yaml', route('a', 'b.example'))
    await expectNews(source, ['relist started', 'applied a generation 2', 'relist finished with 1'])
  })
})

describe('the log in trouble', () => {
  it('gets the changes that it did not take once more', async () => {
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
    await vi.waitFor(() =>
      expect(taken.flat().map(describeEvent)).toContain('applied b generation 1'),
    )
    expect(failures).toBe(3)
    await expectProblem(source, /disk full/)
  })

  it('that is lost is filled again', async () => {
    write('a.yaml', route('a'))
    await (await run()).source.close()
    log = new MemoryLog()
    expect((await run()).news()).toContain('applied a generation 1')
  })
})
