import { renameSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { expectNews, folder, route, run, write } from '../../../test/support/file-source-rig.ts'

describe('a file that is written in place with pauses', () => {
  const a = route('a')
  const b = route('b')
  const whole = `${a}---\n${b}`

  it('keeps its objects until the writer has finished', async () => {
    write('a.yaml', whole)
    const source = await run([folder], { timing: { quietMs: 2_000 } })
    source.news()
    const cuts = [0, a.length, a.length + 4, whole.indexOf('spec:', a.length), whole.length - 1]
    for (const [number, length] of cuts.entries()) {
      write('a.yaml', whole.slice(0, length))
      write(`other${number}.yaml`, route(`other${number}`))
      await expectNews(source, [`applied other${number} generation 1`])
    }
    write('a.yaml', `${a}---\n${route('b', 'new.example')}`)
    await expectNews(source, ['applied b generation 2'])
  })

  it('loses objects once it was quiet', async () => {
    write('a.yaml', whole)
    const source = await run()
    source.news()
    write('a.yaml', a)
    await expectNews(source, ['deleted b (watch)'])
  })

  it('loses objects without that wait if it is replaced or removed', async () => {
    write('a.yaml', whole)
    const source = await run([folder], { timing: { quietMs: 60_000 } })
    source.news()
    write('.next', a)
    renameSync(join(folder, '.next'), join(folder, 'a.yaml'))
    await expectNews(source, ['deleted b (watch)'])
    unlinkSync(join(folder, 'a.yaml'))
    await expectNews(source, ['deleted a (watch)'])
  })

  it('applies other edits without that wait', async () => {
    write('a.yaml', whole)
    const source = await run([folder], { timing: { quietMs: 60_000 } })
    source.news()
    write('a.yaml', `${a}---\n${route('b', 'x')}`)
    await expectNews(source, ['applied b generation 2'])
    write('a.yaml', `${route('a', 'y')}---\n${route('b', 'x')}---\n${route('c')}`)
    await expectNews(source, ['applied a generation 2', 'applied c generation 1'])
  })
})
