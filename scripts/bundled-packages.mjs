/**
 * Packages of many small modules that every start needs. Resolving and loading these one by one takes longer
 * than running them, so they are part of the bundles. All other packages stay outside. Images have these packages
 * as well, with their licences, and list them in the SBOM.
 */
export const bundledPackages = [
  '@bufbuild/protobuf',
  '@nats-io/jetstream',
  '@nats-io/nats-core',
  '@nats-io/nkeys',
  '@nats-io/nuid',
  '@nats-io/obj',
  '@nats-io/transport-node',
  'commander',
  'tweetnacl',
  'undici',
  'xstate',
  'yaml',
]
