import { expect } from 'chai';
import { gridEndpoint } from '../../../../src/plugins/htcondor/place/grid-endpoint.ts';

describe('a grid_resource', () => {
  for (const [resource, endpoint] of [
    ['condor schedd.site.test ce.site.test:9619', 'ce.site.test:9619'],
    ['condor schedd.site.test', undefined],
    ['arc arc.site.test', 'arc.site.test'],
    ['arc https://arc.site.test:443/arex', 'arc.site.test:443'],
    ['ARC  arc.site.test:443', 'arc.site.test:443'],
    ['batch slurm', undefined],
    ['batch slurm user@login.site.test', 'login.site.test'],
    ['ec2 https://cloud.test/', undefined],
    ['arc', undefined],
    ['arc https://', undefined],
    ['', undefined],
    [undefined, undefined],
  ] as const)
    it(`${JSON.stringify(resource)} names ${endpoint ?? 'no endpoint'}`, () => {
      expect(gridEndpoint(resource)).to.equal(endpoint);
    });
});
