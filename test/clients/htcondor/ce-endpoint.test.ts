import { expect } from 'chai';
import { ceEndpoint } from '../../../src/clients/htcondor/ce-endpoint.ts';
import { wantedTokens } from '../../../src/plugins/credentials/iam-token/targets.ts';
import { cesOf } from '../../../src/plugins/htcondor/place/ce-list.ts';
import { submitterConfig } from '../../support/htcondor-batch.ts';

const rows = [
  ['htcondor-ce', 'ce.org', 'ce.org:9619', 'ce.org:9619'],
  ['HTCONDOR-CE', 'https://ce.org:9620/', 'ce.org:9620', 'ce.org:9620'],
  ['htcondor-ce', 'ce.org/path', 'ce.org:9619', 'ce.org:9619'],
  ['cream-ce', 'ce.org', 'ce.org:8443', 'ce.org:8443'],
  ['arc-ce', 'ce.org', 'ce.org:443', 'https://ce.org'],
  ['arc-ce', 'gsiftp://ce.org:2811', 'ce.org:443', 'https://ce.org'],
  ['arc-ce', 'https://ce.org:443/arex', 'ce.org:443/arex', 'https://ce.org'],
  ['arc-ce', 'https://ce.org/arex/', 'ce.org:443/arex', 'https://ce.org'],
  ['ARC-CE', 'ce.org:8443', 'ce.org:8443', 'https://ce.org:8443'],
  ['other', 'ce.org', 'ce.org', 'ce.org'],
  ['other', 'https://ce.org:1', 'ce.org:1', 'ce.org:1'],
] as const;

describe('the endpoint of a computing element', () => {
  for (const [flavour, written, endpoint, audience] of rows)
    it(`c29: is ${endpoint} for ${written} of ${flavour}, and its tokens are for ${audience}`, () => {
      expect(ceEndpoint(written, flavour)).to.deep.equal({ endpoint, host: 'ce.org', audience });
    });

  it('c29: may have an address of IPv6, and stays what it is where it is none', () => {
    expect(ceEndpoint('https://[2001:db8::1]/arex', 'arc-ce')).to.deep.equal({
      endpoint: '[2001:db8::1]:443/arex',
      host: '[2001:db8::1]',
      audience: 'https://[2001:db8::1]',
    });
    expect(ceEndpoint('a:b:c', 'other').endpoint).to.equal('a:b:c');
  });

  it("c29: has the port of ARC's old interface where that is asked for", () => {
    for (const written of ['ce.org', 'ce.org:2811'])
      expect(ceEndpoint(written, 'arc-ce', true).endpoint).to.equal('ce.org:2811');
  });

  it('c29: is one to those who submit and to those who get tokens', () => {
    for (const [ce_flavour, endpoint] of rows.filter(([flavour]) => flavour.endsWith('-ce'))) {
      const [submitted] = cesOf(submitterConfig({ ceList: [{ ce_endpoint: endpoint, ce_flavour }] })).ces;
      const target_list = [{ endpoint, ce_flavour }];
      const given = { target_type: 'ce', target_list, ce_targets: [] };
      const options = given as unknown as Parameters<typeof wantedTokens>[0];
      expect(wantedTokens(options, []).map((one) => one.endpoint)).to.deep.equal([submitted?.endpoint]);
    }
  });
});
