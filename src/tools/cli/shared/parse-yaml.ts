/** Loaded on demand, because the parser takes memory. Bundles keep no names of a package that is so loaded. */
export { parse } from 'yaml'
