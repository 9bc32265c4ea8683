// `npm run data-plane-simulation [-- --seed N | --seeds FROM..TO] [--minutes M]`: the data plane of a
// worker with clients and upstreams on virtual connections and a virtual clock.
// Exit code: 0 every seed passes, 1 one fails, 2 wrong usage.
import { setFlagsFromString } from 'node:v8'
import { runSimulation } from './run-simulation.mjs'

// Each world has memories of WebAssembly. V8 would count them apart, and collect all garbage every few worlds.
setFlagsFromString('--external-memory-accounted-in-global-limit')
setFlagsFromString('--heap-growing-percent=900')
// Most code runs a few hundred times: the interpreter is slow at that, and optimized code comes too late.
setFlagsFromString('--always-sparkplug')

await runSimulation('data-plane-simulation')
