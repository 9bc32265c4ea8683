import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as core from '../../src/engines/core/index.ts'
import { CoreInstance, CoreTrap, createIoCore, loadCore } from '../../src/engines/core/index.ts'
import { loadTexts } from '../../src/engines/core/load.ts'

interface Abi {
  readonly version: number
  readonly exports: readonly { name: string; parameters: readonly unknown[] }[]
  readonly texts: { readonly exports: readonly string[] }
  readonly constants: readonly { name: string; value: number }[]
}

const root = join(import.meta.dirname, '..', '..')
const abi: Abi = JSON.parse(readFileSync(join(root, 'assembly/core.abi.json'), 'utf8'))

describe('core.wasm', () => {
  it('imports nothing', () => {
    expect(WebAssembly.Module.imports(loadCore())).toEqual([])
  })

  it('exports its memory and exactly the functions that core.abi.json lists', () => {
    const names = WebAssembly.Module.exports(loadCore()).map(({ name, kind }) => `${kind} ${name}`)
    const described = abi.exports.map(({ name }) => `function ${name}`)
    expect(names.sort()).toEqual([...described, 'memory memory'].sort())
  })

  it('exports functions with the number of parameters that core.abi.json lists', () => {
    const { exports } = new CoreInstance()
    for (const { name, parameters } of abi.exports) {
      const exported: unknown = exports[name as keyof typeof exports]
      expect(exported, name).toBeTypeOf('function')
      expect((exported as { length: number }).length, name).toBe(parameters.length)
    }
  })

  it('reports the ABI version and the features that the host expects', () => {
    const { exports } = new CoreInstance()
    expect(exports.abi_version()).toBe(abi.version)
    const all = core.FEATURE_HEAD | core.FEATURE_ROUTES | core.FEATURE_REGEX
    expect(exports.features() & all).toBe(all)
  })

  it('uses each error code for one meaning only', () => {
    const codes = abi.constants.filter(({ value }) => value < 0).map(({ value }) => value)
    expect(new Set(codes).size).toBe(codes.length)
    const reasons = codes.filter((code) => code <= -40000 && code !== core.ERROR_RESPONSE)
    expect(new Set(reasons.map((code) => -code % 100)).size).toBe(reasons.length)
  })
})

describe('core-texts.wasm', () => {
  it('imports nothing, and exports its memory and the functions that core.abi.json lists', () => {
    expect(WebAssembly.Module.imports(loadTexts())).toEqual([])
    const names = WebAssembly.Module.exports(loadTexts()).map(({ name }) => name)
    expect(names.sort()).toEqual([...abi.texts.exports, 'memory'].sort())
  })
})

describe('memory of the core', () => {
  it('is separate for each instance', () => {
    const [one, other] = [createIoCore({ memoryPages: 8 }), createIoCore({ memoryPages: 8 })]
    const address = one.allocate(64)
    one.bytes.fill(7, address, address + 64)
    expect(other.bytes.subarray(address, address + 64).includes(7)).toBe(false)
  })

  it('does not grow in an I/O instance, which reports ERROR_MEMORY when it is full', () => {
    const io = createIoCore({ memoryPages: 16 })
    const view = io.bytes
    let blocks = 0
    expect(() => {
      for (; blocks < 100; blocks++) io.allocate(65536)
    }).toThrow('ERROR_MEMORY')
    expect(blocks).toBeGreaterThanOrEqual(8)
    expect(blocks).toBeLessThan(16)
    expect(view.length).toBe(16 * 65536)
    expect(io.exports.memory.buffer.byteLength).toBe(view.length)
    expect(io.exports.reserve(17)).toBe(core.ERROR_MEMORY)
    expect(io.trap).toBeUndefined()
  })

  it('grows as needed in other instances', () => {
    const instance = new CoreInstance()
    const address = instance.allocate(40 * 65536)
    expect(instance.bytes.length).toBeGreaterThan(address + 40 * 65536)
  })

  it('is allocated in blocks that are aligned to 16 bytes and never overlap', () => {
    const instance = new CoreInstance()
    const taken: [number, number][] = []
    for (let round = 0; round < 400; round++) {
      const size = (round * 7919) % 5000
      const address = instance.allocate(size)
      expect(address % 16).toBe(0)
      for (const [start, end] of taken) {
        if (address < end && start < address + size) throw new Error('blocks overlap')
      }
      taken.push([address, address + size])
      if (round % 3 === 0) {
        const [gone] = taken.splice((round * 31) % taken.length, 1)
        instance.free(gone?.[0] ?? 0)
      }
    }
  })

  it('of the scratch arena is reusable after reset, also across chunks', () => {
    const { exports } = new CoreInstance()
    const first = exports.alloc(100)
    const place = exports.mark()
    const second = exports.alloc(200_000)
    const third = exports.alloc(10)
    exports.reset(place)
    expect(exports.alloc(200_000)).toBe(second)
    expect(exports.alloc(10)).toBe(third)
    exports.reset(0)
    expect(exports.alloc(100)).toBe(first)
    expect(exports.alloc(-1)).toBe(0)
    expect(exports.alloc(2 ** 31 - 1)).toBe(0)
  })
})

describe('a trap of the core', () => {
  it('throws CoreTrap from this and every later call of the instance, but not from other instances', () => {
    const lost = createIoCore({ memoryPages: 8 })
    const head = lost.createHead()
    const table = lost.createRouteTable()
    // An address that no block can have makes the module read outside its memory.
    expect(() => lost.free(0xfffffff0)).toThrow(CoreTrap)
    expect(lost.trap).toBeInstanceOf(CoreTrap)
    expect(() => lost.parseRequestHead(head, 0, 0, 0, 1)).toThrow(CoreTrap)
    expect(() => table.match(head)).toThrow(CoreTrap)
    expect(() => lost.allocate(16)).toThrow(CoreTrap)
    expect(createIoCore({ memoryPages: 8 }).allocate(16)).toBeGreaterThan(0)
  })
})
