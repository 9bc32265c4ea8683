// The part of the WebAssembly JavaScript API that the core uses. TypeScript keeps these types in its
// DOM library, which would bring a browser's globals into server code.
declare namespace WebAssembly {
  interface Module {
    readonly [Symbol.toStringTag]: string
  }
  const Module: {
    new (bytes: Uint8Array): Module
    imports(module: Module): { module: string; name: string; kind: string }[]
    exports(module: Module): { name: string; kind: string }[]
  }
  interface Memory {
    readonly buffer: ArrayBuffer
    grow(pages: number): number
  }
  const Memory: {
    new (limits: { initial: number; maximum?: number; shared?: boolean }): Memory
  }
  interface Table {
    readonly length: number
  }
  interface Instance {
    readonly exports: Record<string, unknown>
  }
  const Instance: { new (module: Module): Instance }
  interface RuntimeError extends Error {
    readonly name: string
  }
  const RuntimeError: { new (message?: string): RuntimeError }
}
