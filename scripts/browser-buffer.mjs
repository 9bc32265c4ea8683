// Injected into bundles for browsers wherever `Buffer` is used.
export { Buffer } from 'buffer/'
