declare module 'embedded:*' {
  /** A file in Base64; vocabularies are compressed with gzip. */
  const content: string
  export default content
}

declare module '*.wasm' {
  const module: WebAssembly.Module
  export default module
}
