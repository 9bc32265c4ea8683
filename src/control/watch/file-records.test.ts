import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  expectNews,
  folder,
  invalid,
  loseLog,
  recordsFile,
  route,
  run,
  write,
} from '../../../test/support/file-source-rig.ts'
import { validateObject } from '../api/validate.ts'
import { FileRecords } from './file-records.ts'
import type { FileSourceOptions } from './files.ts'

/** Starts again. Returns the source and the names of the objects that were validated. */
async function restart(more: Partial<FileSourceOptions> = {}) {
  const validated: string[] = []
  const source = await run([folder], {
    validate: (object) => {
      validated.push((object as { metadata: { name: string } }).metadata.name)
      return validateObject(object)
    },
    ...more,
  })
  return { ...source, validated }
}

const secret = `apiVersion: v1
kind: Secret
metadata: { name: key }
stringData: { key: hunter2 }
`

const credential = `${route('six')}  rules:
    - filters:
        - type: RequestHeaderModifier
          requestHeaderModifier: { set: [{ name: Authorization, value: Bearer x }] }
`

it('validates after a restart only files whose content has changed or that are not recorded', async () => {
  write('a.yaml', `${route('one')}---\n${route('two')}`)
  write('b.yaml', route('three'))
  write('c.yaml', `${route('four')}---\n${secret}`)
  write('d.yaml', `${route('five')}---\n${invalid('bad')}`)
  write('e.yaml', credential)
  const first = await restart()
  const again = ['bad', 'five', 'four', 'key', 'six']
  expect(first.validated.toSorted()).toEqual([...again, 'one', 'three', 'two'].sort())
  await first.source.close()
  const values: string[] = []
  const second = await restart({
    keepSecret: (_, value) => values.push(Buffer.from(value).toString()),
  })
  expect(second.validated.toSorted()).toEqual(again)
  expect(second.news()).toEqual(['relist started', 'relist finished with 7'])
  expect(second.problems).toEqual(first.problems)
  expect(values.toSorted()).toEqual(['Bearer x', 'hunter2'])
  write('b.yaml', route('three', 'b.example'))
  await expectNews(second, ['applied three generation 2'])
  await second.source.close()
  const third = await restart()
  expect(third.validated).not.toContain('three')
  expect(third.news()).toEqual(['relist started', 'relist finished with 7'])
})

it('reads an object from its recorded file once another file no longer defines it', async () => {
  write('b.yaml', route('one', 'b.example'))
  await (await restart()).source.close()
  const source = await restart()
  expect(source.validated).toEqual([])
  source.news()
  write('a.yaml', route('one', 'a.example'))
  await expectNews(source, ['applied one generation 2'])
  unlinkSync(join(folder, 'a.yaml'))
  await expectNews(source, ['applied one generation 3'])
  const [event] = source.batches.at(-1) ?? []
  expect(event?.data).toMatchObject({
    origin: { file: join(folder, 'b.yaml'), line: 1 },
    object: { spec: { hostnames: ['b.example'] } },
  })
})

it('validates everything if the log was lost, the records are damaged, or another version wrote them', async () => {
  write('a.yaml', route('one'))
  await (await restart()).source.close()
  const other = await restart({ records: new FileRecords(recordsFile(), '2') })
  expect(other.validated).toEqual(['one'])
  await other.source.close()
  await (await restart()).source.close()
  const withoutObject = readFileSync(recordsFile(), 'utf8').replace(/,\[[^[\]]*\]/, ',null')
  expect(withoutObject).toContain(',null')
  for (const text of ['{"build', '7', '{"records":[1]}', withoutObject]) {
    writeFileSync(recordsFile(), text)
    const damaged = await restart()
    expect(damaged.validated).toEqual(['one'])
    await damaged.source.close()
  }
  loseLog()
  const source = await restart()
  expect(source.validated).toEqual(['one'])
  expect(source.news()).toContain('applied one generation 1')
})
